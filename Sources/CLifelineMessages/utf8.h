#ifndef LIFELINE_UTF8_H
#define LIFELINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "lifeline_base.h"
#include "lifeline_message.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF.
bool lifeline_is_utf8(const uint8_t *bytes, size_t count);

// The same on any processor; lifeline_is_utf8 uses it where it has nothing faster. Declared for tests.
bool lifeline_is_utf8_by_table(const uint8_t *bytes, size_t count);

// Writes a scalar in UTF-8, at most four bytes. Returns the place after it.
uint8_t *lifeline_write_scalar(uint8_t *place, uint32_t scalar);

// Whether all bytes are ASCII. LIFELINE_INPUT_SLOP readable bytes must follow them.
static inline bool lifeline_is_ascii(const uint8_t *bytes, size_t count) {
#if defined(__SSE2__)
    _Static_assert(sizeof(__m128i) <= LIFELINE_INPUT_SLOP, "A whole vector is loaded even for a single byte.");
    for (; count > 16; bytes += 16, count -= 16) {
        if (_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes)) != 0) return false;
    }
    uint32_t top_bits = (uint32_t)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes));
    return (top_bits & (((uint32_t)1 << count) - 1)) == 0;
#else
    const uint64_t top_bits = 0x8080808080808080;
    uint64_t eight;
    for (; count > 8; bytes += 8, count -= 8) {
        memcpy(&eight, bytes, sizeof eight);
        if ((eight & top_bits) != 0) return false;
    }
    memcpy(&eight, bytes, sizeof eight);
    return count == 0 || (eight << (64 - 8 * count) & top_bits) == 0;
#endif
}

LIFELINE_ASSUME_NONNULL_END

#endif
