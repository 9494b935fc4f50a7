// Sizes of the objects in an arena.
#ifndef LIFELINE_SIZES_H
#define LIFELINE_SIZES_H

#include <stddef.h>
#include <stdint.h>

// Every object is aligned to 8 bytes, the size of the largest field. No object is larger than PTRDIFF_MAX, so sizes up
// to this one can be rounded up, and two of them added, without overflow.
#define lifeline_largest_size ((size_t)PTRDIFF_MAX - 7)

// The capacity that a repeated field gets with its first element: 16 bytes, which is two pointers, enough for many
// fields of small messages. A fixed number of elements would waste memory where each of many messages has a single
// large one.
static inline size_t lifeline_smallest_capacity(size_t element_size) {
    return element_size < 16 ? 16 / element_size : 1;
}

static inline size_t lifeline_rounded_up(size_t size) {
    return (size + 7) & ~(size_t)7;
}

#endif
