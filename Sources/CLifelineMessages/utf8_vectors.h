// Checks UTF-8 sixteen bytes at a time, on x86 processors with SSSE3 (all since 2006): the algorithm of Keiser and
// Lemire, "Validating UTF-8 in less than one instruction per byte" (2021), https://arxiv.org/abs/2010.03090.
//
// Three half bytes decide whether two neighbouring bytes may stand in their order: both halves of the first and the
// upper half of the second. A table for each half says, as a set of bits, which errors it allows for. There is an error
// when all three allow for it. Only one question needs more than two bytes: whether a third or fourth byte is a
// continuation. It has a bit of its own, which is set where a continuation follows another.
#ifndef LIFELINE_UTF8_SSSE3_H
#define LIFELINE_UTF8_SSSE3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tmmintrin.h>

#define LIFELINE_SSSE3 static inline __attribute__((target("ssse3"), always_inline))

enum {
    TOO_SHORT = 1 << 0,       // a lead byte, and no continuation
    TOO_LONG = 1 << 1,        // ASCII, and a continuation
    OVERLONG_3 = 1 << 2,      // E0, and less than A0
    TOO_LARGE = 1 << 3,       // F4 and more than 8F, or F5 to FF and more than 8F
    SURROGATE = 1 << 4,       // ED, and more than 9F
    OVERLONG_2 = 1 << 5,      // C0 or C1
    TOO_LARGE_1000 = 1 << 6,  // F5 to FF, and less than 90
    OVERLONG_4 = 1 << 6,      // F0, and less than 90: shares the bit, as no byte allows for both
    CONTINUATIONS = 1 << 7,   // two of them: no error where a third or fourth byte is due
    // The errors that do not depend on the lower half of the first byte.
    ANY_LOW = TOO_SHORT | TOO_LONG | CONTINUATIONS,
};

// For each byte of `block`, the errors between it and the byte before: none when no bit is set.
LIFELINE_SSSE3 __m128i lifeline_utf8_errors(__m128i block, __m128i previous_block) {
    const __m128i by_first_high = _mm_setr_epi8(
        TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,          // ASCII
        (char)CONTINUATIONS, (char)CONTINUATIONS, (char)CONTINUATIONS, (char)CONTINUATIONS,      // continuations
        TOO_SHORT | OVERLONG_2, TOO_SHORT,                                                       // leads of two,
        TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4  // three and four
    );
    const char over_f4 = (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000);
    const __m128i by_first_low = _mm_setr_epi8(
        (char)(ANY_LOW | OVERLONG_3 | OVERLONG_2 | OVERLONG_4), (char)(ANY_LOW | OVERLONG_2), (char)ANY_LOW,
        (char)ANY_LOW, (char)(ANY_LOW | TOO_LARGE), over_f4, over_f4, over_f4, over_f4, over_f4, over_f4, over_f4,
        over_f4, (char)(ANY_LOW | TOO_LARGE | TOO_LARGE_1000 | SURROGATE), over_f4, over_f4);
    const char below_90 = (char)(TOO_LONG | OVERLONG_2 | CONTINUATIONS | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4);
    const char below_a0 = (char)(TOO_LONG | OVERLONG_2 | CONTINUATIONS | OVERLONG_3 | TOO_LARGE);
    const char below_c0 = (char)(TOO_LONG | OVERLONG_2 | CONTINUATIONS | SURROGATE | TOO_LARGE);
    const __m128i by_second_high = _mm_setr_epi8(
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, below_90, below_a0,
        below_c0, below_c0, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);
    const __m128i low_half = _mm_set1_epi8(0x0F);

    __m128i first = _mm_alignr_epi8(block, previous_block, 15);  // the byte before each
    __m128i first_high = _mm_and_si128(_mm_srli_epi16(first, 4), low_half);
    __m128i second_high = _mm_and_si128(_mm_srli_epi16(block, 4), low_half);
    __m128i errors = _mm_and_si128(
        _mm_and_si128(
            _mm_shuffle_epi8(by_first_high, first_high),
            _mm_shuffle_epi8(by_first_low, _mm_and_si128(first, low_half))),
        _mm_shuffle_epi8(by_second_high, second_high));

    // A third or fourth byte is due two bytes behind one from E0 on, and three bytes behind one from F0 on.
    __m128i two_before = _mm_alignr_epi8(block, previous_block, 14);
    __m128i three_before = _mm_alignr_epi8(block, previous_block, 13);
    __m128i third = _mm_subs_epu8(two_before, _mm_set1_epi8(0xE0 - 0x80));
    __m128i fourth = _mm_subs_epu8(three_before, _mm_set1_epi8(0xF0 - 0x80));
    __m128i due = _mm_and_si128(_mm_or_si128(third, fourth), _mm_set1_epi8((char)CONTINUATIONS));
    return _mm_xor_si128(errors, due);
}

static __attribute__((target("ssse3"))) bool lifeline_is_utf8_by_ssse3(const uint8_t *bytes, size_t count) {
    __m128i errors = _mm_setzero_si128();
    __m128i previous = _mm_setzero_si128();
    size_t index = 0;
    for (; count - index >= 16; index += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(bytes + index));
        errors = _mm_or_si128(errors, lifeline_utf8_errors(block, previous));
        previous = block;
    }
    // The rest, followed by zeros, before which an incomplete sequence is too short.
    uint8_t rest[16] = {0};
    memcpy(rest, bytes + index, count - index);
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)rest);
    errors = _mm_or_si128(errors, lifeline_utf8_errors(block, previous));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(errors, _mm_setzero_si128())) == 0xFFFF;
}

#endif
