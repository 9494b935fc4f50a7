#include "base64.h"

#include "vectors.h"

#if defined(LIFELINE_MAY_HAVE_VECTORS)
#include "base64_vectors.h"
#endif

// The six bits of the letters of both alphabets of Base64 (RFC 4648), and one more, so that 0 is no letter.
static const uint8_t base64_letters[256] = {
    ['A'] = 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89,
    ['a'] = 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112,
    113, 114, 115,
    ['0'] = 116, 117, 118, 119, 120, 121, 122, 123, 124, 125,
    ['+'] = 126, ['-'] = 126, ['/'] = 127, ['_'] = 127,
};

int64_t lifeline_decode_base64(const uint8_t *text, size_t count, uint8_t *place) {
    uint8_t *start = place;
#if defined(LIFELINE_MAY_HAVE_VECTORS)
    if (count >= sizeof(LifelineVector) && lifeline_has_vectors()) {
        size_t decoded = count / sizeof(LifelineVector) * sizeof(LifelineVector);
        if (!lifeline_decode_base64_by_vectors(text, decoded, place)) return -1;
        text += decoded;
        count -= decoded;
        place += decoded / 4 * 3;
    }
#endif
    for (; count >= 4; text += 4, count -= 4) {
        uint32_t first = base64_letters[text[0]], second = base64_letters[text[1]];
        uint32_t third = base64_letters[text[2]], fourth = base64_letters[text[3]];
        if ((first & second & third & fourth & 64) == 0) return -1;
        uint32_t three = (first & 63) << 18 | (second & 63) << 12 | (third & 63) << 6 | (fourth & 63);
        *place++ = (uint8_t)(three >> 16);
        *place++ = (uint8_t)(three >> 8);
        *place++ = (uint8_t)three;
    }
    if (count == 0) return place - start;
    if (count == 1) return -1;
    uint32_t first = base64_letters[text[0]], second = base64_letters[text[1]];
    uint32_t third = count == 3 ? base64_letters[text[2]] : 64;
    if ((first & second & third & 64) == 0) return -1;
    uint32_t two = (first & 63) << 10 | (second & 63) << 4 | (third & 63) >> 2;
    *place++ = (uint8_t)(two >> 8);
    if (count == 3) *place++ = (uint8_t)two;
    return place - start;
}
