// Looks at sixteen bytes of text at a time, for bytes that must be escaped, or end a string of JSON. Processors
// without these instructions have no LIFELINE_JSON_BLOCKS, and look at each byte.
#ifndef LIFELINE_JSON_BLOCKS_H
#define LIFELINE_JSON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_base.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#define LIFELINE_JSON_BLOCKS 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define LIFELINE_JSON_BLOCKS 1
#endif

LIFELINE_ASSUME_NONNULL_BEGIN

// Whether a byte needs no escape in a string.
static inline bool lifeline_json_is_plain(uint8_t byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

#if defined(LIFELINE_JSON_BLOCKS)

enum { LIFELINE_JSON_BLOCK = 16 };

typedef uint8_t LifelineJSONBlock __attribute__((vector_size(LIFELINE_JSON_BLOCK)));

static inline LifelineJSONBlock lifeline_json_block(const uint8_t *bytes) {
    LifelineJSONBlock block;
    memcpy(&block, bytes, sizeof block);
    return block;
}

// Four bits, or one, for each byte of a block, the first byte's lowest. The bytes are 0xFF or 0.
#if defined(__SSE2__)
enum { LIFELINE_JSON_BITS = 1 };

static inline uint64_t lifeline_json_bits(LifelineJSONBlock block) {
    return (uint32_t)_mm_movemask_epi8((__m128i)block);
}

static inline bool lifeline_json_is_ascii(LifelineJSONBlock block) { return lifeline_json_bits(block) == 0; }
#else
enum { LIFELINE_JSON_BITS = 4 };

static inline uint64_t lifeline_json_bits(LifelineJSONBlock block) {
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(block), 4)), 0);
}

static inline bool lifeline_json_is_ascii(LifelineJSONBlock block) { return vmaxvq_u8(block) < 0x80; }
#endif

// The bits of the bytes that need an escape in a string.
static inline uint64_t lifeline_json_special(LifelineJSONBlock block) {
    return lifeline_json_bits((LifelineJSONBlock)((block == '"') | (block == '\\') | (block < 0x20)));
}

// The index of the first byte with bits, which there are.
static inline size_t lifeline_json_first(uint64_t bits) {
    return (size_t)__builtin_ctzll(bits) / LIFELINE_JSON_BITS;
}

#endif

// The first byte from `next` on that needs an escape in a string, or the end. `*is_ascii` becomes false when
// there may be others than ASCII before it. The bytes between `start` and `next` can be read.
static inline const uint8_t *lifeline_json_skip_plain(
    const uint8_t *start, const uint8_t *next, const uint8_t *end, bool *is_ascii) {
#if defined(LIFELINE_JSON_BLOCKS)
    LifelineJSONBlock all = {0};
    uint64_t special = 0;
    for (; end - next >= LIFELINE_JSON_BLOCK; next += LIFELINE_JSON_BLOCK) {
        LifelineJSONBlock block = lifeline_json_block(next);
        special = lifeline_json_special(block);
        all |= block;
        if (special != 0) break;
    }
    if (special == 0 && next != end && end - start >= LIFELINE_JSON_BLOCK) {
        // The last block, of which some bytes are before `next`.
        LifelineJSONBlock block = lifeline_json_block(end - LIFELINE_JSON_BLOCK);
        all |= block;
        special = lifeline_json_special(block) >> LIFELINE_JSON_BITS * (LIFELINE_JSON_BLOCK - (end - next));
        if (special == 0) next = end;
    }
    if (!lifeline_json_is_ascii(all)) *is_ascii = false;
    if (special != 0) return next + lifeline_json_first(special);
#else
    (void)start;
#endif
    for (; next != end && lifeline_json_is_plain(*next); next += 1) {
        if (*next >= 0x80) *is_ascii = false;
    }
    return next;
}

LIFELINE_ASSUME_NONNULL_END

#endif
