#include "crash.h"

#if defined(__SANITIZE_ADDRESS__)
#define DIFFERENTIAL_HAS_SANITIZERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIFFERENTIAL_HAS_SANITIZERS 1
#endif
#endif

#if defined(DIFFERENTIAL_HAS_SANITIZERS)

#include <sanitizer/common_interface_defs.h>

void differential::call_before_crash(void (*print)()) {
    __sanitizer_set_death_callback(print);
}

#else

#include <csignal>
#include <initializer_list>

static void (*print_input)();
// The ordinary stack may have overflowed.
static char signal_stack[1 << 18];

static void print_and_crash(int signal) {
    // Printing is not safe in a signal's handler, but the process ends in any case.
    std::signal(signal, SIG_DFL);
    print_input();
    std::raise(signal);
}

void differential::call_before_crash(void (*print)()) {
    print_input = print;
    stack_t stack{};
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = print_and_crash;
    action.sa_flags = SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

#endif
