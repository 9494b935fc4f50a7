// Room for more elements of a repeated or map field.
#ifndef LIFELINE_ARRAY_INLINE_H
#define LIFELINE_ARRAY_INLINE_H

#include "arena.h"
#include "lifeline_array.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The first elements of a repeated field: room for `needed`, at most UINT16_MAX so that no size overflows, or more.
// NULL when the current block has no room.
static inline void *_Nullable lifeline_first_elements(LifelineArena *arena, size_t needed, size_t element_size) {
    size_t smallest = lifeline_smallest_capacity(element_size);
    size_t capacity = needed > smallest ? needed : smallest;
    size_t size = lifeline_rounded_up(sizeof(LifelineArrayHeader) + capacity * element_size);
    LifelineArrayHeader *header = lifeline_arena_take(arena, size);
    if (header == NULL) return NULL;
    *header = (LifelineArrayHeader){.capacity = (uint32_t)capacity};
    return header + 1;
}

// Room for `more` elements after those in the field. The caller raises the count when the elements are stored. NULL
// when the arena's budget is exhausted.
void *_Nullable lifeline_append(LifelineArena *arena, void *message, const LifelineField *field, size_t more);

LIFELINE_ASSUME_NONNULL_END

#endif
