#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "epoll_peer.h"

static cpu_set_t allowed;
static bool knows_allowed;

bool process_pin(int core) {
    if (!knows_allowed) knows_allowed = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    // The index among the allowed cores: in a container they need not begin at 0.
    for (int i = 0, index = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed) && index++ == core % CPU_COUNT(&allowed)) CPU_SET(i, &one);
    }
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

bool process_unpin(void) {
    return knows_allowed && sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

int process_core_count(void) {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
}

uint64_t process_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return 0;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

uint64_t process_cpu_time(int process) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process, &clock) || clock_gettime(clock, &time)) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
