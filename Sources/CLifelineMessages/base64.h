#ifndef LIFELINE_BASE64_H
#define LIFELINE_BASE64_H

#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Decodes Base64 of either alphabet (RFC 4648) without its padding, to a place with room for `count / 4 * 3 + 3` bytes.
// Returns how many bytes there are, or -1.
int64_t lifeline_decode_base64(const uint8_t *text, size_t count, uint8_t *place);

LIFELINE_ASSUME_NONNULL_END

#endif
