#ifndef LIFELINE_UTF8_H
#define LIFELINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Whether the bytes are well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF.
bool lifeline_is_utf8(const uint8_t *bytes, size_t count);

LIFELINE_ASSUME_NONNULL_END

#endif
