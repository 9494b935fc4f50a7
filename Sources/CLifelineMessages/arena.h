// Taking memory from an arena's current block, in line.
#ifndef LIFELINE_ARENA_INLINE_H
#define LIFELINE_ARENA_INLINE_H

#include <string.h>

#include "lifeline_arena.h"
#include "lifeline_array.h"
#include "lifeline_table.h"
#include "poison.h"
#include "sizes.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// `size` bytes, a multiple of 8, of the current block; NULL when it has no room for them.
static inline void *_Nullable lifeline_arena_take(LifelineArena *arena, size_t size) {
    uint8_t *memory = arena->next;
    if (size > (size_t)(arena->limit - memory)) return NULL;
    arena->next = memory + size;
    lifeline_unpoison(memory, size);
    return memory;
}

// What lifeline_arena_allocate does.
static inline void *_Nullable lifeline_arena_allocate_inline(LifelineArena *arena, size_t size) {
    if (size > lifeline_largest_size) return NULL;
    void *memory = lifeline_arena_take(arena, lifeline_rounded_up(size));
    return memory != NULL ? memory : lifeline_arena_allocate(arena, size);
}

// Elements of a repeated field that had none, with room for `needed` and maybe more. At most UINT16_MAX of them, so
// that no size overflows. NULL when the current block has no room.
static inline void *_Nullable lifeline_first_elements(LifelineArena *arena, size_t needed, size_t element_size) {
    size_t smallest = lifeline_smallest_capacity(element_size);
    size_t capacity = needed > smallest ? needed : smallest;
    size_t size = lifeline_rounded_up(sizeof(LifelineArrayHeader) + capacity * element_size);
    LifelineArrayHeader *header = lifeline_arena_take(arena, size);
    if (header == NULL) return NULL;
    *header = (LifelineArrayHeader){.capacity = (uint32_t)capacity};
    return header + 1;
}

// Makes `message`, of the size in its table rounded up, one with every field absent: all zero but for the descriptor.
static inline void lifeline_clear_message(const LifelineMessageTable *table, uint8_t *message, size_t size) {
    // Four words at a time; the last four may have been cleared already. A struct has at least its base's three.
    static const uint64_t zeros[4] = {0, 0, 0, 0};
    if (size < sizeof zeros) {
        memcpy(message, zeros, 3 * sizeof *zeros);
    } else {
        for (size_t offset = 0; offset + sizeof zeros < size; offset += sizeof zeros) {
            memcpy(message + offset, zeros, sizeof zeros);
            __asm__ volatile("");  // or compilers would call memset, which takes longer for so little
        }
        memcpy(message + size - sizeof zeros, zeros, sizeof zeros);
    }
    memcpy(message, table->default_instance, sizeof(void *));
}

LIFELINE_ASSUME_NONNULL_END

#endif
