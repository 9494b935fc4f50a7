// Varints and tags: seven bits a byte, the least significant first, the top bit set in all bytes but the last.
#ifndef LIFELINE_VARINT_H
#define LIFELINE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "lifeline_message.h"

LIFELINE_ASSUME_NONNULL_BEGIN

enum {
    LIFELINE_LARGEST_VARINT = 10,  // bytes: ten times seven bits hold 64
    LIFELINE_LARGEST_TAG = 5,      // bytes: five times seven bits hold 32
};

// What is left to read. Invariant: next <= end.
typedef struct LifelineInput {
    const uint8_t *next;
    const uint8_t *end;
} LifelineInput;

static inline size_t lifeline_left(const LifelineInput *input) {
    return (size_t)(input->end - input->next);
}

// Longer forms of small numbers are read, as every protobuf parser does.
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

// The length in front of a length-delimited value, with that many bytes there.
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

static inline size_t lifeline_varint_length(uint64_t value) {
    size_t length = 1;
    while (value >= 0x80) {
        value >>= 7;
        length += 1;
    }
    return length;
}

// Writes at most LIFELINE_LARGEST_VARINT bytes; returns the first byte behind them.
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
