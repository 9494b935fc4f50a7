// Takes memory from an arena's current block, in line.
#ifndef LIFELINE_ARENA_INLINE_H
#define LIFELINE_ARENA_INLINE_H

#include <string.h>

#include <protobuf-c/protobuf-c.h>

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

// The same as lifeline_arena_allocate.
static inline void *_Nullable lifeline_arena_allocate_inline(LifelineArena *arena, size_t size) {
    if (size > lifeline_largest_size) return NULL;
    void *memory = lifeline_arena_take(arena, lifeline_rounded_up(size));
    return memory != NULL ? memory : lifeline_arena_allocate(arena, size);
}

_Static_assert(sizeof(ProtobufCMessage) == 24, "Every struct is cleared as if it began with three words.");

// Makes `message`, of the table's size rounded up, one with every field absent: all zero but for the descriptor.
static inline void lifeline_clear_message(const LifelineMessageTable *table, uint8_t *message, size_t size) {
    // Clears four words at a time. The last four may overlap the ones before.
    static const uint64_t zeros[4] = {0, 0, 0, 0};
    if (size < sizeof zeros) {
        memcpy(message, zeros, sizeof(ProtobufCMessage));
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
