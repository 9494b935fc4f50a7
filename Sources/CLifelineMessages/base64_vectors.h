// Decodes Base64 sixteen letters at a time: the algorithm of Muła and Lemire, "Faster Base64 Encoding and Decoding
// Using AVX2 Instructions" (2018), https://arxiv.org/abs/1704.00605, for both alphabets at once.
//
// The half bytes of a letter decide whether it is one: a table for each half says, as a set of bits, of which rows of
// ASCII it may be a letter, and both have to name the same row. The upper half also decides what to add for its value,
// but for the letters that differ between the alphabets.
#ifndef LIFELINE_BASE64_VECTORS_H
#define LIFELINE_BASE64_VECTORS_H

#include "vectors.h"

enum {
    ROW_2 = 1 << 0,  // + - /
    ROW_3 = 1 << 1,  // digits
    ROW_4 = 1 << 2,  // A to O, and so row 6: a to o
    ROW_5 = 1 << 3,  // P to Z, and _
    ROW_7 = 1 << 4,  // p to z
};

// The values of sixteen letters. Other characters are not zero in `*others`.
LIFELINE_VECTOR static inline LifelineVector lifeline_base64_values(LifelineVector letters, LifelineVector *others) {
    enum { UP_TO_A = ROW_5 | ROW_7 };
    const LifelineVector by_high = {0, 0, ROW_2, ROW_3, ROW_4, ROW_5, ROW_4, ROW_7, 0, 0, 0, 0, 0, 0, 0, 0};
    enum { DIGIT = ROW_3 | ROW_4 | UP_TO_A };
    const LifelineVector by_low = {
        ROW_3 | UP_TO_A, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT, DIGIT,
        ROW_4 | UP_TO_A, ROW_4 | ROW_2, ROW_4, ROW_4 | ROW_2, ROW_4, ROW_4 | ROW_2 | ROW_5,
    };
    enum { SLASH = 63 - '/', ZERO = 52 - '0', CAPITAL = 256 - 'A', SMALL = 256 + 26 - 'a' };
    const LifelineVector offsets = {0, 0, SLASH, ZERO, CAPITAL, CAPITAL, SMALL, SMALL, 0, 0, 0, 0, 0, 0, 0, 0};
    LifelineVector high = letters >> 4;
    LifelineVector rows = lifeline_look_up(by_high, high) & lifeline_look_up(by_low, letters & 0x0F);
    *others |= (LifelineVector)(rows == 0);
    return letters + lifeline_look_up(offsets, high) + ((LifelineVector)(letters == '+') & (62 - '+' - SLASH))
           + ((LifelineVector)(letters == '-') & (62 - '-' - SLASH))
           + ((LifelineVector)(letters == '_') & (63 - '_' - CAPITAL + 256));
}

// Puts the six bits of each byte together: twelve bytes, and four that mean nothing.
LIFELINE_VECTOR static inline LifelineVector lifeline_join_six_bits(LifelineVector values) {
    typedef uint16_t Pairs __attribute__((vector_size(16)));
    typedef uint32_t Fours __attribute__((vector_size(16)));
    Pairs pairs = (Pairs)values;
    pairs = (pairs << 6 & 0x0FC0) | pairs >> 8;
    Fours fours = (Fours)pairs;
    fours = (fours << 12 & 0xFFF000) | fours >> 16;
    const LifelineVector order = {2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 0, 0, 0, 0};
    return lifeline_look_up((LifelineVector)fours, order);
}

// Decodes `count` letters, a multiple of sixteen. False if some characters are not such letters.
LIFELINE_VECTOR static bool lifeline_decode_base64_by_vectors(const uint8_t *text, size_t count, uint8_t *place) {
    LifelineVector others = {0};
    for (; count > 0; text += sizeof others, count -= sizeof others, place += 12) {
        LifelineVector letters;
        memcpy(&letters, text, sizeof letters);
        LifelineVector joined = lifeline_join_six_bits(lifeline_base64_values(letters, &others));
        memcpy(place, &joined, 12);
    }
    uint64_t halves[2];
    memcpy(halves, &others, sizeof halves);
    return (halves[0] | halves[1]) == 0;
}

#endif
