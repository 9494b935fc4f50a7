#define _GNU_SOURCE

#include "CLifelineTesting.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { nanoseconds_per_second = 1000000000 };

static _Thread_local const struct lifeline_world *world;

/// The functions that this file replaces.
enum { DISPATCH_AFTER_F, CLOCK_GETTIME, GETTIMEOFDAY, SYSCALL, OPEN, REPLACED_COUNT };

static void *replaced_functions[REPLACED_COUNT];

static void *replaced(int function) {
    static const char *const names[] = {"dispatch_after_f", "clock_gettime", "gettimeofday", "syscall", "open"};
    void *found = __atomic_load_n(&replaced_functions[function], __ATOMIC_RELAXED);
    if (!found) {
        found = dlsym(RTLD_NEXT, names[function]);
        if (!found) abort();
        __atomic_store_n(&replaced_functions[function], found, __ATOMIC_RELAXED);
    }
    return found;
}

// Resolved early, because a signal handler or a child process must not call dlsym.
__attribute__((constructor)) static void find_replaced_functions(void) {
    for (int function = 0; function < REPLACED_COUNT; function++) replaced(function);
}

// MARK: Tasks. The hooks belong to libswift_Concurrency. They are null at first, which means the default.

struct job;

#if __has_attribute(swiftcall)
#define SWIFT_CALL __attribute__((swiftcall))
#else
// Of compilers that can only look for mistakes here.
#define SWIFT_CALL
#endif

typedef SWIFT_CALL void (*enqueue_function)(struct job *);

typedef SWIFT_CALL void (*enqueue_hook)(struct job *, enqueue_function);

extern enqueue_hook swift_task_enqueueGlobal_hook;

/// An earlier hook of another library; mostly null.
static enqueue_hook earlier_hook;

static SWIFT_CALL void enqueue_global(struct job *job, enqueue_function original) {
    if (world) {
        world->enqueue(world->context, job);
    } else if (earlier_hook) {
        earlier_hook(job, original);
    } else {
        original(job);
    }
}

static void install_hooks(void) {
    earlier_hook = swift_task_enqueueGlobal_hook;
    swift_task_enqueueGlobal_hook = enqueue_global;
}

void lifeline_set_world(const struct lifeline_world *new_world) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_hooks);
    world = new_world;
}

// From libswift_Concurrency. The executor is two words; both null mean the global executor.
extern SWIFT_CALL void swift_job_run(struct job *, void *executor, uintptr_t implementation);

void lifeline_run_job(void *job) { swift_job_run(job, NULL, 0); }

void *lifeline_world_context(void) { return world ? world->context : NULL; }

// A task that sleeps asks libdispatch to wake it up.
void dispatch_after_f(uint64_t when, void *queue, void *argument, void (*function)(void *)) {
    if (!world) {
        void (*original)(uint64_t, void *, void *, void (*)(void *)) = replaced(DISPATCH_AFTER_F);
        original(when, queue, argument, function);
        return;
    }
    if (when == ~UINT64_C(0)) return;  // DISPATCH_TIME_FOREVER
    // Times of libdispatch (dispatch/time.h) have the clock in the two highest bits: uptime, date, or time since the
    // start.
    const uint64_t highest = UINT64_C(1) << 63;
    const bool counts_uptime = !(when & highest);
    int64_t time;
    if (counts_uptime) {
        time = (int64_t)when;
    } else if (when & highest >> 1) {
        time = -(int64_t)when - world->start_date;
    } else {
        time = (int64_t)(when & ~highest);
    }
    world->call_at(world->context, time, counts_uptime, function, argument);
}

// MARK: The time

static int64_t time_of(const struct lifeline_world *world, clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI: return world->start_date + world->now;
    // They stand still while a machine sleeps, unlike CLOCK_BOOTTIME: clock_gettime(2).
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE: return world->uptime;
    default: return world->now;
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!world) {
        int (*original)(clockid_t, struct timespec *) = replaced(CLOCK_GETTIME);
        return original(clock, time);
    }
    int64_t nanoseconds = time_of(world, clock);
    time->tv_sec = nanoseconds / nanoseconds_per_second;
    time->tv_nsec = nanoseconds % nanoseconds_per_second;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (!world) {
        int (*original)(struct timeval *, void *) = replaced(GETTIMEOFDAY);
        return original(time, zone);
    }
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    time->tv_sec = precise.tv_sec;
    time->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (result) *result = precise.tv_sec;
    return precise.tv_sec;
}

// MARK: Randomness

ssize_t getrandom(void *bytes, size_t count, unsigned int flags) {
    if (!world) return syscall(SYS_getrandom, bytes, count, flags);
    world->fill_with_random_bytes(world->context, bytes, count);
    return (ssize_t)count;
}

int getentropy(void *bytes, size_t count) {
    if (count > 256) {
        errno = EIO;
        return -1;
    }
    return getrandom(bytes, count, 0) == (ssize_t)count ? 0 : -1;
}

// Swift's SystemRandomNumberGenerator and BoringSSL call the kernel this way.
long syscall(long number, ...) {
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (world && number == SYS_getrandom) {
        world->fill_with_random_bytes(world->context, (void *)a[0], (size_t)a[1]);
        return a[1];
    }
    long (*original)(long, ...) = replaced(SYSCALL);
    return original(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Foundation's UUID opens the device each time, and reads some bytes.
int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int (*original)(const char *, int, ...) = replaced(OPEN);
    if (!world || (strcmp(path, "/dev/urandom") && strcmp(path, "/dev/random"))) return original(path, flags, mode);
    int file = memfd_create("urandom", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (file < 0) return file;
    unsigned char bytes[4096];
    world->fill_with_random_bytes(world->context, bytes, sizeof bytes);
    if (write(file, bytes, sizeof bytes) == sizeof bytes && lseek(file, 0, SEEK_SET) == 0) return file;
    close(file);
    errno = EIO;
    return -1;
}

// MARK: Hashing

// From libswiftCore (Hashing.cpp). The order of a set or dictionary depends on these random numbers, and on its address
// unless `is_deterministic` is set.
extern struct {
    uint64_t seed0;
    uint64_t seed1;
    bool is_deterministic;
} _swift_stdlib_Hashing_parameters;

// Set before the first set is made, as the environment variable SWIFT_DETERMINISTIC_HASHING does. Otherwise the same
// seed would not give the same story twice.
__attribute__((constructor)) static void hash_deterministically(void) {
    _swift_stdlib_Hashing_parameters.seed0 = 0;
    _swift_stdlib_Hashing_parameters.seed1 = 0;
    _swift_stdlib_Hashing_parameters.is_deterministic = true;
}
