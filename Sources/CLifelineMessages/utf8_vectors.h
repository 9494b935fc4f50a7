// Checks UTF-8 sixteen bytes at a time: the algorithm of Keiser and Lemire, "Validating UTF-8 in less than one
// instruction per byte" (2021), https://arxiv.org/abs/2010.03090.
//
// Three half bytes decide whether two neighbouring bytes may follow each other: both halves of the first and the upper
// half of the second. A table for each half says, as a set of bits, which errors it allows for. There is an error when
// all three allow for it. Only one question needs more than two bytes: whether a third or fourth byte is a
// continuation. It has a bit of its own, which is set where a continuation follows another.
#ifndef LIFELINE_UTF8_VECTORS_H
#define LIFELINE_UTF8_VECTORS_H

#include "vectors.h"

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
LIFELINE_VECTOR static inline LifelineVector lifeline_utf8_errors(LifelineVector block, LifelineVector previous_block) {
    const LifelineVector by_first_high = {
        TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,  // ASCII
        CONTINUATIONS, CONTINUATIONS, CONTINUATIONS, CONTINUATIONS,                      // continuations
        TOO_SHORT | OVERLONG_2, TOO_SHORT,                                               // leads of two,
        TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4,  // three and four
    };
    enum { OVER_F4 = ANY_LOW | TOO_LARGE | TOO_LARGE_1000 };
    const LifelineVector by_first_low = {
        ANY_LOW | OVERLONG_3 | OVERLONG_2 | OVERLONG_4, ANY_LOW | OVERLONG_2, ANY_LOW, ANY_LOW, ANY_LOW | TOO_LARGE,
        OVER_F4, OVER_F4, OVER_F4, OVER_F4, OVER_F4, OVER_F4, OVER_F4, OVER_F4, OVER_F4 | SURROGATE, OVER_F4, OVER_F4,
    };
    enum {
        CONTINUATION = TOO_LONG | OVERLONG_2 | CONTINUATIONS,
        BELOW_90 = CONTINUATION | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4,
        BELOW_A0 = CONTINUATION | OVERLONG_3 | TOO_LARGE,
        BELOW_C0 = CONTINUATION | SURROGATE | TOO_LARGE,
    };
    const LifelineVector by_second_high = {
        TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
        BELOW_90, BELOW_A0, BELOW_C0, BELOW_C0, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
    };

    LifelineVector first = LIFELINE_BYTES_BEFORE(1, block, previous_block);
    LifelineVector errors = lifeline_look_up(by_first_high, first >> 4) & lifeline_look_up(by_first_low, first & 0x0F)
                            & lifeline_look_up(by_second_high, block >> 4);

    // A third or fourth byte is due two bytes after one from E0 on, and three bytes after one from F0 on.
    const LifelineVector zero = {0};
    LifelineVector third = lifeline_subtract(LIFELINE_BYTES_BEFORE(2, block, previous_block), zero + (0xE0 - 0x80));
    LifelineVector fourth = lifeline_subtract(LIFELINE_BYTES_BEFORE(3, block, previous_block), zero + (0xF0 - 0x80));
    return errors ^ ((third | fourth) & CONTINUATIONS);
}

LIFELINE_VECTOR static bool lifeline_is_utf8_by_vectors(const uint8_t *bytes, size_t count) {
    LifelineVector errors = {0};
    LifelineVector previous = {0};
    LifelineVector block;
    size_t index = 0;
    for (; count - index >= sizeof block; index += sizeof block) {
        memcpy(&block, bytes + index, sizeof block);
        errors |= lifeline_utf8_errors(block, previous);
        previous = block;
    }
    // The rest, followed by zeros, before which an incomplete sequence is too short.
    block = (LifelineVector){0};
    memcpy(&block, bytes + index, count - index);
    errors |= lifeline_utf8_errors(block, previous);
    uint64_t halves[2];
    memcpy(halves, &errors, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

#endif
