// The arena: it hands out memory from the current block, and takes a new one from malloc when that is used up.
//
// Invariants: `next` and every size are multiples of 8. The bytes from `next` up to `limit` are free.
#include "arena.h"

#include <stdlib.h>

_Static_assert(sizeof(LifelineArena) == 32, "Every message has one.");

struct LifelineArenaBlock {
    LifelineArenaBlock *_Nullable older;
    size_t size;  // with this header
};

// Blocks double, so that there are few of them, up to a size of which the unused rest hardly counts.
static const size_t smallest_block_size = 192;
static const size_t largest_doubled_size = (size_t)1 << 20;

void lifeline_arena_init(LifelineArena *arena, void *memory, size_t size, size_t next_block_size) {
    arena->next = memory;
    arena->limit = (uint8_t *)memory + size;
    arena->blocks = NULL;
    arena->budget = LIFELINE_NO_BUDGET;
    if (next_block_size > largest_doubled_size) next_block_size = largest_doubled_size;
    if (next_block_size < smallest_block_size) next_block_size = smallest_block_size;
    arena->next_block_size = (uint16_t)(next_block_size / LIFELINE_ARENA_UNIT);
    arena->may_hold_malformed_text = false;
    arena->is_loan = false;
    arena->is_overdue = false;
    arena->lending = 0;
}

void lifeline_arena_destroy(LifelineArena *arena) {
    LifelineArenaBlock *block = arena->blocks;
    while (block != NULL) {
        LifelineArenaBlock *older = block->older;
        free(block);
        block = older;
    }
    arena->blocks = NULL;
    arena->limit = arena->next;
}

// The part of a budget that `size` bytes take, rounded up.
static size_t units(size_t size) {
    return size / LIFELINE_ARENA_UNIT + (size % LIFELINE_ARENA_UNIT != 0);
}

static LifelineArenaBlock *_Nullable take_block(LifelineArena *arena, size_t size) {
    if (units(size) > arena->budget) return NULL;
    LifelineArenaBlock *block = malloc(size);
    if (block == NULL) return NULL;
    if (arena->budget != LIFELINE_NO_BUDGET) arena->budget -= (uint32_t)units(size);
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    lifeline_poison(block + 1, size - sizeof *block);
    return block;
}

// Not inlined: the common case needs none of it.
__attribute__((noinline)) static void *_Nullable allocate_from_new_block(LifelineArena *arena, size_t size) {
    if (size > lifeline_largest_size - sizeof(LifelineArenaBlock)) return NULL;
    size_t needed = sizeof(LifelineArenaBlock) + size;
    size_t next = (size_t)arena->next_block_size * LIFELINE_ARENA_UNIT;
    size_t wanted = units(next) > arena->budget ? (size_t)arena->budget * LIFELINE_ARENA_UNIT : next;
    // A request that is large for the next block, or for the remaining budget, gets a block of its own, and the rest of
    // the current block stays in use.
    bool large = needed > wanted / 2;
    LifelineArenaBlock *block = take_block(arena, large ? needed : wanted);
    if (block == NULL) return NULL;
    uint8_t *memory = (uint8_t *)(block + 1);
    size_t rest = block->size - needed;
    if (rest >= (size_t)(arena->limit - arena->next)) {
        arena->next = memory + size;
        arena->limit = arena->next + rest;
    }
    if (next < largest_doubled_size) arena->next_block_size *= 2;
    lifeline_unpoison(memory, size);
    return memory;
}

void *lifeline_arena_allocate(LifelineArena *arena, size_t size) {
    if (size > lifeline_largest_size) return NULL;
    size_t rounded = lifeline_rounded_up(size);
    void *memory = lifeline_arena_take(arena, rounded);
    return memory != NULL ? memory : allocate_from_new_block(arena, rounded);
}

bool lifeline_arena_resize_last(LifelineArena *arena, void *memory, size_t old_size, size_t new_size) {
    if (new_size > lifeline_largest_size) return false;
    uint8_t *start = memory;
    if (start + lifeline_rounded_up(old_size) != arena->next) return false;
    if (lifeline_rounded_up(new_size) > (size_t)(arena->limit - start)) return false;
    arena->next = start + lifeline_rounded_up(new_size);
    lifeline_unpoison(start, new_size);
    return true;
}

size_t lifeline_arena_block_bytes(const LifelineArena *arena) {
    size_t total = 0;
    for (const LifelineArenaBlock *block = arena->blocks; block != NULL; block = block->older) total += block->size;
    return total;
}

size_t lifeline_arena_restart(LifelineArena *arena, void *memory, size_t size) {
    lifeline_poison(memory, size);
    if (arena->blocks == NULL) return 0;
    size_t block_bytes = lifeline_arena_block_bytes(arena);
    lifeline_arena_destroy(arena);
    return block_bytes;
}

uint8_t lifeline_arena_exchange_lending(LifelineArena *arena, uint8_t lending) {
    return __atomic_exchange_n(&arena->lending, lending, __ATOMIC_ACQ_REL);
}
