// Sizes of what lies in an arena.
#ifndef LIFELINE_SIZES_H
#define LIFELINE_SIZES_H

#include <stddef.h>
#include <stdint.h>

// Everything is aligned for the largest field, which is 8 bytes. No object is larger than PTRDIFF_MAX, so that sizes
// below it can be rounded up, and two of them added, without overflow.
#define lifeline_largest_size ((size_t)PTRDIFF_MAX - 7)

// How many elements a repeated field gets room for when it gets its first one: 32 bytes of them, which is four
// pointers, enough for most repeated fields of small messages. It is a size and not a count, lest a single large
// element in each of many small messages take several times its place.
static inline size_t lifeline_smallest_capacity(size_t element_size) {
    return element_size < 32 ? 32 / element_size : 1;
}

static inline size_t lifeline_rounded_up(size_t size) {
    return (size + 7) & ~(size_t)7;
}

#endif
