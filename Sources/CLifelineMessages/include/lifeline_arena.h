// The arena that one message tree lives in: memory is handed out in order and freed all at once.
#ifndef LIFELINE_ARENA_H
#define LIFELINE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineArenaBlock LifelineArenaBlock;

typedef struct LifelineArena {
    uint8_t *_Nullable next;                // first free byte, always 8-aligned
    uint8_t *_Nullable limit;               // end of the current block
    LifelineArenaBlock *_Nullable blocks;   // blocks that the arena allocated itself, newest first
    uint32_t is_overdue : 1;                // for whoever gave it its budget; nothing here asks
    uint32_t budget : 31;                   // what may still be taken from malloc: see lifeline_arena_budget
    uint16_t next_block_size;               // in the same unit
    bool may_hold_malformed_text : 1;       // strings in it may be other than UTF-8: decoding sets this
    bool is_loan : 1;                       // for whoever lends the arena; nothing here asks
    uint8_t lending;                        // for whoever lends the arena; nothing here asks
} LifelineArena;

// Sizes of blocks, and budgets, are kept small: every message has an arena. They count units of this many bytes.
enum { LIFELINE_ARENA_UNIT = 64 };

#define LIFELINE_NO_BUDGET 0x7FFFFFFFu

// A budget of `size` bytes, rounded down; LIFELINE_NO_BUDGET where that is no limit.
static inline uint32_t lifeline_arena_budget(size_t size) {
    size_t units = size / LIFELINE_ARENA_UNIT;
    return units < LIFELINE_NO_BUDGET ? (uint32_t)units : LIFELINE_NO_BUDGET;
}

// Starts an arena in memory that the caller owns (8-aligned, may be of size 0). The first block that it takes from
// malloc has `next_block_size` bytes, at least 192, and later ones double, up to 2 MiB; but what needs over half of a
// block, or what is left of the budget, gets one of its own. It takes blocks without a limit until its `budget` is set.
void lifeline_arena_init(LifelineArena *arena, void *memory, size_t size, size_t next_block_size);

// Frees every block that the arena allocated. Everything it handed out is invalid afterwards.
void lifeline_arena_destroy(LifelineArena *arena);

// `size` bytes, 8-aligned and not cleared. NULL when the budget or malloc is exhausted; the arena stays usable.
void *_Nullable lifeline_arena_allocate(LifelineArena *arena, size_t size);

// Grows or shrinks in place what was handed out last: `memory`, of `old_size` bytes. False, with nothing changed, when
// something was handed out since or the current block has no room for `new_size` bytes.
bool lifeline_arena_resize_last(LifelineArena *arena, void *memory, size_t old_size, size_t new_size);

// Bytes that the arena's own blocks take from malloc now.
size_t lifeline_arena_block_bytes(const LifelineArena *arena);

// Sets `lending` and returns what it was, in one step, for other threads may do so too.
uint8_t lifeline_arena_exchange_lending(LifelineArena *arena, uint8_t lending);

LIFELINE_ASSUME_NONNULL_END

#endif
