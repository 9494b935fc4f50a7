// Checks UTF-8: sixteen bytes at a time if the processor can, else eight ASCII bytes at a time, and other sequences by
// the rows of the standard's table.
#include "utf8.h"

#include <string.h>

#include "vectors.h"

#if defined(LIFELINE_MAY_HAVE_VECTORS)
#include "utf8_vectors.h"
#endif

static inline bool is_continuation(uint8_t byte) {
    return (byte & 0xC0) == 0x80;
}

// The length of the well-formed sequence at `bytes`, whose first byte is not ASCII; 0 when it is malformed.
static size_t sequence_length(const uint8_t *bytes, size_t count) {
    uint8_t lead = bytes[0];
    if (lead < 0xC2 || lead > 0xF4) return 0;  // a continuation, an overlong form, or over U+10FFFF
    size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (count < length) return 0;
    // The range of the second byte excludes overlong forms, surrogates, and the other code points over U+10FFFF.
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (bytes[1] < low || bytes[1] > high) return 0;
    for (size_t index = 2; index < length; index += 1) {
        if (!is_continuation(bytes[index])) return 0;
    }
    return length;
}

bool lifeline_is_utf8_by_table(const uint8_t *bytes, size_t count) {
    size_t index = 0;
    while (index < count) {
        if (count - index >= 8) {
            uint64_t eight;
            memcpy(&eight, bytes + index, sizeof eight);
            if ((eight & 0x8080808080808080) == 0) {
                index += 8;
                continue;
            }
        }
        if (bytes[index] < 0x80) {
            index += 1;
            continue;
        }
        size_t length = sequence_length(bytes + index, count - index);
        if (length == 0) return false;
        index += length;
    }
    return true;
}

bool lifeline_is_utf8(const uint8_t *bytes, size_t count) {
#if defined(LIFELINE_MAY_HAVE_VECTORS)
    if (count >= 16 && lifeline_has_vectors()) return lifeline_is_utf8_by_vectors(bytes, count);
#endif
    return lifeline_is_utf8_by_table(bytes, count);
}

uint8_t *lifeline_write_scalar(uint8_t *place, uint32_t scalar) {
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int length = scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4;
    for (int index = length - 1; index > 0; index -= 1) {
        place[index] = (uint8_t)(0x80 | (scalar & 0x3F));
        scalar >>= 6;
    }
    place[0] = (uint8_t)(marks[length] | scalar);
    return place + length;
}
