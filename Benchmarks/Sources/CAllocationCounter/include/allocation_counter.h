// Counts what a process takes from malloc. To be loaded with LD_PRELOAD.
#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stddef.h>
#include <stdint.h>

// Calls of malloc and the like so far, of all threads. A realloc counts as one.
uint64_t allocation_counter_value(void);

// Bytes of heap in use, with what malloc adds to each allocation.
size_t allocation_counter_heap_bytes(void);

#endif
