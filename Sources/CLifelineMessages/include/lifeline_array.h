// The header in memory before the elements of a repeated or map field, and before unknown fields.
#ifndef LIFELINE_ARRAY_H
#define LIFELINE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "lifeline_arena.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineArrayHeader {
    uint32_t capacity;  // elements that there is room for
    uint32_t unsorted;  // map fields, while decoding: entries were added since the last sort
} LifelineArrayHeader;

static inline LifelineArrayHeader *lifeline_array_header(void *elements) {
    return (LifelineArrayHeader *)elements - 1;
}

// Room for at least `needed` elements of `element_size` bytes, of which the first `count` are those of `elements`.
// Returns `elements` itself when its capacity suffices, else a larger array whose capacity at least doubles. NULL when
// the arena's budget is exhausted or `needed` is over UINT32_MAX.
void *_Nullable lifeline_array_reserve(
    LifelineArena *arena, void *_Nullable elements, size_t count, size_t needed, size_t element_size);

LIFELINE_ASSUME_NONNULL_END

#endif
