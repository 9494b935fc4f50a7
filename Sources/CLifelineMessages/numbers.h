// Reads decimal numbers as C's library does, in any locale.
#ifndef LIFELINE_NUMBERS_H
#define LIFELINE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The number that the `count` bytes at `text` are, which must be one; infinite when it is too large. False when there
// is no memory.
bool lifeline_read_double(const uint8_t *text, size_t count, double *value);
bool lifeline_read_float(const uint8_t *text, size_t count, float *value);

LIFELINE_ASSUME_NONNULL_END

#endif
