// Varints and tags: seven bits a byte, the least significant first, the top bit set in all bytes but the last.
#ifndef LIFELINE_VARINT_H
#define LIFELINE_VARINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_message.h"

LIFELINE_ASSUME_NONNULL_BEGIN

enum {
    LIFELINE_LARGEST_VARINT = 10,  // bytes: ten times seven bits hold 64
    LIFELINE_LARGEST_TAG = 5,      // bytes: five times seven bits hold 32
};

// The input that is still to be read. Invariant: next <= end.
typedef struct LifelineInput {
    const uint8_t *next;
    const uint8_t *end;
} LifelineInput;

static inline size_t lifeline_left(const LifelineInput *input) {
    return (size_t)(input->end - input->next);
}

// Accepts longer forms of small numbers, as every protobuf parser does.
static inline LifelineStatus lifeline_read_varint(LifelineInput *input, uint64_t *value) {
    const uint8_t *next = input->next;
    if (next != input->end && *next < 0x80) {  // most are one byte
        *value = *next;
        input->next = next + 1;
        return LIFELINE_OK;
    }
    uint64_t result = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
        if (next == input->end) return LIFELINE_TRUNCATED;
        uint8_t byte = *next++;
        if (shift == 63 && byte > 1) return LIFELINE_MALFORMED_VARINT;
        result |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            input->next = next;
            *value = result;
            return LIFELINE_OK;
        }
    }
    return LIFELINE_MALFORMED_VARINT;
}

// Reads a varint of two to eight bytes, whose first byte does not end it, by loading eight bytes at once. Returns the
// place after it, which may be after the end of the input; NULL if it is longer.
static inline const uint8_t *_Nullable lifeline_read_long_varint(const uint8_t *next, uint64_t *value) {
    uint64_t bytes;
    memcpy(&bytes, next, sizeof bytes);
    uint64_t ends = ~bytes & 0x8080808080808080;  // the top bits of bytes that end a varint
    if (ends == 0) return NULL;
    uint64_t groups = bytes & (ends ^ (ends - 1)) & 0x7F7F7F7F7F7F7F7F;  // seven bits in each byte up to the first end
    groups = (groups & 0x007F007F007F007F) | (groups & 0x7F007F007F007F00) >> 1;  // fourteen bits in each two bytes
    groups = (groups & 0x00003FFF00003FFF) | (groups & 0x3FFF00003FFF0000) >> 2;  // and so on
    *value = (groups & 0x000000000FFFFFFF) | (groups & 0x0FFFFFFF00000000) >> 4;
    return next + (__builtin_ctzll(ends) + 1) / 8;
}

static inline LifelineStatus lifeline_read_tag(LifelineInput *input, uint32_t *tag) {
    const uint8_t *next = input->next;
    uint32_t result = 0;
    for (uint32_t shift = 0; shift < 32; shift += 7) {
        if (next == input->end) return LIFELINE_TRUNCATED;
        uint8_t byte = *next++;
        if (shift == 28 && byte > 0x0F) return LIFELINE_INVALID_TAG;
        result |= (uint32_t)(byte & 0x7F) << shift;
        if (byte < 0x80) break;
    }
    if (result >> 3 == 0 || (result & 7) > 5) return LIFELINE_INVALID_TAG;
    input->next = next;
    *tag = result;
    return LIFELINE_OK;
}

// Reads a length and the bytes after it.
static inline LifelineStatus lifeline_read_payload(LifelineInput *input, LifelineInput *payload) {
    uint64_t length = 0;
    LifelineStatus status = lifeline_read_varint(input, &length);
    if (status != LIFELINE_OK) return status;
    if (length > lifeline_left(input)) return LIFELINE_TRUNCATED;
    payload->next = input->next;
    payload->end = input->next + length;
    input->next = payload->end;
    return LIFELINE_OK;
}

// Zigzag turns signed numbers near zero into small unsigned ones: 0, -1, 1, -2 become 0, 1, 2, 3.
static inline uint32_t lifeline_unzigzag32(uint32_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

static inline uint64_t lifeline_unzigzag64(uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

static inline uint32_t lifeline_zigzag32(int32_t value) {
    return (uint32_t)value << 1 ^ (0 - ((uint32_t)value >> 31));
}

static inline uint64_t lifeline_zigzag64(int64_t value) {
    return (uint64_t)value << 1 ^ (0 - ((uint64_t)value >> 63));
}

// The length of a varint of at most eight bytes: a byte for every seven bits up to the highest one that is set. (9/64
// is a little less than 1/7, and exact enough for 56 bits.)
static inline size_t lifeline_short_varint_length(uint64_t value) {
    return (size_t)((63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

// The bytes of a varint of two to eight bytes, the first one lowest: the inverse of lifeline_read_long_varint.
static inline uint64_t lifeline_spread_varint(uint64_t value) {
    uint64_t groups = (value & 0x000000000FFFFFFF) | (value & 0x00FFFFFFF0000000) << 4;
    groups = (groups & 0x00003FFF00003FFF) | (groups & 0x0FFFC0000FFFC000) << 2;
    groups = (groups & 0x007F007F007F007F) | (groups & 0x3F803F803F803F80) << 1;
    uint64_t last = (uint64_t)1 << 8 * (lifeline_short_varint_length(value) - 1);  // the last byte's lowest bit
    return groups | (0x8080808080808080 & (last - 1));  // all bytes below it are followed by another
}

static inline size_t lifeline_varint_length(uint64_t value) {
    size_t length = 1;
    while (value >= 0x80) {
        value >>= 7;
        length += 1;
    }
    return length;
}

// Writes at most LIFELINE_LARGEST_VARINT bytes; returns the first byte after them.
static inline uint8_t *lifeline_write_varint(uint8_t *next, uint64_t value) {
    while (value >= 0x80) {
        *next++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *next++ = (uint8_t)value;
    return next;
}

LIFELINE_ASSUME_NONNULL_END

#endif
