// Taking memory from an arena's current block, in line.
#ifndef LIFELINE_ARENA_INLINE_H
#define LIFELINE_ARENA_INLINE_H

#include <string.h>

#include "lifeline_arena.h"
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

// Makes `message`, of the size in its table rounded up, one with every field absent: all zero but for the descriptor.
static inline void lifeline_clear_message(const LifelineMessageTable *table, uint8_t *message, size_t size) {
    // Two words at a time; the last two may have been cleared already. A struct is never smaller than its base.
    static const uint64_t zeros[2] = {0, 0};
    for (size_t offset = 0; offset + sizeof zeros < size; offset += sizeof zeros) {
        memcpy(message + offset, zeros, sizeof zeros);
    }
    memcpy(message + size - sizeof zeros, zeros, sizeof zeros);
    memcpy(message, table->default_instance, sizeof(void *));
}

LIFELINE_ASSUME_NONNULL_END

#endif
