// Counts what a process takes from malloc, while it is loaded with LD_PRELOAD.
#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

// Calls of malloc and the like so far, of all threads. A realloc counts as one.
uint64_t allocation_counter_value(void);

#endif
