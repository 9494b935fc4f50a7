// The arena: hands out memory from the current block, and takes a new block from malloc when that is used up.
//
// Invariants: `next` and every size are multiples of 8; `limit - next` bytes are free; the sum of all blocks' sizes,
// headers included, and `budget` is what the arena started with.
#include "lifeline_arena.h"

#include <stdlib.h>

#include "arena.h"

struct LifelineArenaBlock {
    LifelineArenaBlock *_Nullable older;
    size_t size;  // with this header
};

// The first block stays below the 1,032 bytes up to which glibc's malloc answers from its per-thread cache. Blocks then
// double, so that their number is logarithmic, up to a size at which what is left over at the end hardly counts.
static const size_t smallest_block_size = 1024;
static const size_t largest_block_size = (size_t)1 << 20;

void lifeline_arena_init(LifelineArena *arena, void *memory, size_t size, size_t budget) {
    arena->next = memory;
    arena->limit = (uint8_t *)memory + size;
    arena->blocks = NULL;
    arena->budget = budget;
    size_t next = size < largest_block_size ? size : largest_block_size;
    arena->next_block_size = (uint32_t)lifeline_rounded_up(next > smallest_block_size ? next : smallest_block_size);
    arena->may_hold_malformed_text = false;
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

static LifelineArenaBlock *_Nullable take_block(LifelineArena *arena, size_t size) {
    if (size > arena->budget) return NULL;
    LifelineArenaBlock *block = malloc(size);
    if (block == NULL) return NULL;
    arena->budget -= size;
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    lifeline_poison(block + 1, size - sizeof *block);
    return block;
}

static void *_Nullable allocate_from_new_block(LifelineArena *arena, size_t size) {
    if (size > SIZE_MAX - sizeof(LifelineArenaBlock)) return NULL;
    size_t needed = sizeof(LifelineArenaBlock) + size;
    size_t wanted = arena->next_block_size;
    if (wanted > arena->budget) wanted = arena->budget & ~(size_t)7;
    // A request that is large for the next block gets one of its own, so that the rest of the current one stays in use.
    bool large = needed > wanted / 4;
    LifelineArenaBlock *block = take_block(arena, large ? needed : wanted);
    if (block == NULL) return NULL;
    uint8_t *memory = (uint8_t *)(block + 1);
    size_t rest = block->size - needed;
    if (rest >= (size_t)(arena->limit - arena->next)) {
        arena->next = memory + size;
        arena->limit = arena->next + rest;
    }
    if (arena->next_block_size < largest_block_size) arena->next_block_size *= 2;
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
