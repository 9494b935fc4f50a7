#ifndef LIFELINE_TESTING_H
#define LIFELINE_TESTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Replaces the sources of time and randomness of a process, and its executor of tasks, on threads that run a simulated
// world. Other threads are not affected, except that sets and dictionaries have the same order in each process.
//
// It works by symbols of the C library and a hook of Swift's runtime, which an executable may replace. So it covers all
// code of the process: clocks, dates and random numbers of Swift, `clock_gettime`, `gettimeofday` and `time`,
// `getrandom`, `Task.sleep` without a tolerance, and tasks that were started without an executor. It does not cover the
// main actor, `Task.sleep` with a tolerance, `arc4random`, `random` and `timespec_get`.

/// A world that runs on one thread.
struct lifeline_world {
    /// Passed to the functions below.
    void *context;
    /// Nanoseconds since the start of the world's machines.
    int64_t now;
    /// Nanoseconds for which the machine of the running program has been awake.
    int64_t uptime;
    /// Nanoseconds from 1970 until then.
    int64_t start_date;
    /// Runs a task that has no executor of its own.
    void (*enqueue)(void *context, void *job);
    /// Calls a function at a time, which is one of `now`, or with `counts_uptime` one of `uptime`.
    void (*call_at)(void *context, int64_t time, bool counts_uptime, void (*function)(void *), void *argument);
    /// Fills memory with random bytes.
    void (*fill_with_random_bytes)(void *context, void *bytes, size_t count);
};

/// Lets this thread run a world; a null pointer ends that.
void lifeline_set_world(const struct lifeline_world *world);

/// Runs a job that was enqueued without an executor, as the global executor does.
void lifeline_run_job(void *job);

/// The `context` of the world that this thread runs; null if it runs none.
void *lifeline_world_context(void);

#endif
