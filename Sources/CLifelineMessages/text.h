// Appends to a text.
#ifndef LIFELINE_TEXT_H
#define LIFELINE_TEXT_H

#include <string.h>

#include "lifeline_json.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Memory for `size` more bytes, in which case more is taken from malloc. NULL when that has none.
uint8_t *_Nullable lifeline_text_grow(LifelineText *text, size_t size);

// Room for `size` bytes, at least one, after the existing ones; the caller raises the count. NULL when there is no
// memory.
static inline uint8_t *_Nullable lifeline_text_reserve(LifelineText *text, size_t size) {
    if (size > text->capacity - text->count) return lifeline_text_grow(text, size);
    return text->memory + text->count;
}

static inline bool lifeline_text_append_byte(LifelineText *text, char byte) {
    uint8_t *place = lifeline_text_reserve(text, 1);
    if (place == NULL) return false;
    *place = (uint8_t)byte;
    text->count += 1;
    return true;
}

// The most digits of a number of 64 bits.
enum { LIFELINE_DIGITS = 20 };

// Writes a number in decimal, at most LIFELINE_DIGITS bytes. Returns the place after it.
uint8_t *lifeline_write_digits(uint8_t *place, uint64_t number);

// The same with at least `width` digits, zeros in front.
uint8_t *lifeline_write_padded(uint8_t *place, uint32_t number, int width);

LIFELINE_ASSUME_NONNULL_END

#endif
