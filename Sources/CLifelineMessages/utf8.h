#ifndef LIFELINE_UTF8_H
#define LIFELINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF.
bool lifeline_is_utf8(const uint8_t *bytes, size_t count);

// Whether all bytes are ASCII. LIFELINE_INPUT_SLOP readable bytes must follow them.
static inline bool lifeline_is_ascii(const uint8_t *bytes, size_t count) {
    uint64_t eight;
    memcpy(&eight, bytes, sizeof eight);
    if (count < 8) {
        if (count == 0) return true;
        return (eight << (64 - 8 * count) & 0x8080808080808080) == 0;
    }
    uint64_t all = eight;
    for (size_t index = 8; index + 8 < count; index += 8) {
        memcpy(&eight, bytes + index, sizeof eight);
        all |= eight;
    }
    memcpy(&eight, bytes + count - 8, sizeof eight);
    return ((all | eight) & 0x8080808080808080) == 0;
}

LIFELINE_ASSUME_NONNULL_END

#endif
