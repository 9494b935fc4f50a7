// Sizes of what lies in an arena.
#ifndef LIFELINE_SIZES_H
#define LIFELINE_SIZES_H

#include <stddef.h>
#include <stdint.h>

// Everything is aligned for the largest field, which is 8 bytes. No object is larger than PTRDIFF_MAX, so that sizes
// below it can be rounded up, and two of them added, without overflow.
#define lifeline_largest_size ((size_t)PTRDIFF_MAX - 7)

static inline size_t lifeline_rounded_up(size_t size) {
    return (size + 7) & ~(size_t)7;
}

#endif
