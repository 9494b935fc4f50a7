// Counts a process's use of malloc. Load it with LD_PRELOAD.
#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stddef.h>
#include <stdint.h>

// Calls of malloc and similar functions so far, by all threads. A realloc counts as one.
uint64_t allocation_counter_value(void);

// Bytes of heap in use, including malloc's overhead for each allocation.
size_t allocation_counter_heap_bytes(void);

#endif
