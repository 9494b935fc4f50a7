// The arena that one message tree lives in: it hands out memory in order and frees it all at once.
#ifndef LIFELINE_ARENA_H
#define LIFELINE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineArenaBlock LifelineArenaBlock;

// 32 bytes, for every message has one: so the fields are small, and three of them are for the owner of the arena.
typedef struct LifelineArena {
    uint8_t *_Nullable next;                // first free byte, always 8-aligned
    uint8_t *_Nullable limit;               // end of the current block
    LifelineArenaBlock *_Nullable blocks;   // blocks that the arena allocated itself, newest first
    uint32_t is_overdue : 1;                // the owner's: see docs/message-memory.md, "Garbage"
    uint32_t budget : 31;                   // what may still be taken from malloc: see lifeline_arena_budget
    uint16_t next_block_size;               // in units, as the budget
    bool may_hold_malformed_text : 1;       // strings in it may not be UTF-8: set by decoding
    bool is_loan : 1;                       // the owner's: it is a loan, and the fields above are unused
    uint8_t lending;                        // the owner's: see "Loans" there, and lifeline_arena_exchange_lending
} LifelineArena;

// Budgets and block sizes count units of this many bytes.
enum { LIFELINE_ARENA_UNIT = 64 };

#define LIFELINE_NO_BUDGET 0x7FFFFFFFu

// A budget of `size` bytes, rounded down; LIFELINE_NO_BUDGET when it is too large to count.
static inline uint32_t lifeline_arena_budget(size_t size) {
    size_t units = size / LIFELINE_ARENA_UNIT;
    return units < LIFELINE_NO_BUDGET ? (uint32_t)units : LIFELINE_NO_BUDGET;
}

// Starts an arena in memory that the caller owns (8-aligned, may be of size 0). The first block that it takes from
// malloc has `next_block_size` bytes, at least 192; later ones double, up to 2 MiB. A request that is larger than half
// of the next block, or than half of the remaining budget, gets a block of its own. There is no limit until the caller
// sets `budget`.
void lifeline_arena_init(LifelineArena *arena, void *memory, size_t size, size_t next_block_size);

// Frees every block that the arena allocated. Everything it handed out is invalid afterwards.
void lifeline_arena_destroy(LifelineArena *arena);

// Frees the blocks, so that lifeline_arena_init can start the arena again in the `size` bytes at `memory` that it
// started in. Everything it handed out is invalid afterwards. Returns the bytes that the blocks had.
size_t lifeline_arena_restart(LifelineArena *arena, void *memory, size_t size);

// `size` bytes, 8-aligned and not cleared. NULL when the budget or malloc is exhausted; the arena stays usable.
void *_Nullable lifeline_arena_allocate(LifelineArena *arena, size_t size);

// Grows or shrinks the last allocation in place: `memory`, of `old_size` bytes. Returns false and changes nothing when
// it is not the last one, or the current block has no room for `new_size` bytes.
bool lifeline_arena_resize_last(LifelineArena *arena, void *memory, size_t old_size, size_t new_size);

// The bytes that the arena's own blocks take from malloc.
size_t lifeline_arena_block_bytes(const LifelineArena *arena);

// Sets `lending` and returns its old value, atomically: two threads may do so at once.
uint8_t lifeline_arena_exchange_lending(LifelineArena *arena, uint8_t lending);

LIFELINE_ASSUME_NONNULL_END

#endif
