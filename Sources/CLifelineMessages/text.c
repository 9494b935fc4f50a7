// Text that grows at its end, and decimal numbers.
#include "text.h"

#include <stdlib.h>

#include "sizes.h"

uint8_t *lifeline_text_grow(LifelineText *text, size_t size) {
    if (size > lifeline_largest_size / 2 - text->count) return NULL;
    size_t needed = text->count + size;
    size_t capacity = text->capacity * 2 > needed ? text->capacity * 2 : needed;
    if (capacity < 256) capacity = 256;
    uint8_t *memory = text->owns_memory ? realloc(text->memory, capacity) : malloc(capacity);
    if (memory == NULL) return NULL;
    if (!text->owns_memory && text->count > 0) memcpy(memory, text->memory, text->count);
    text->memory = memory;
    text->capacity = capacity;
    text->owns_memory = true;
    return memory + text->count;
}

bool lifeline_text_append(LifelineText *text, const void *bytes, size_t count) {
    if (count == 0) return true;  // without memory there is no place either
    uint8_t *place = lifeline_text_reserve(text, count);
    if (place == NULL) return false;
    memcpy(place, bytes, count);
    text->count += count;
    return true;
}

void lifeline_text_destroy(LifelineText *text) {
    if (text->owns_memory) free(text->memory);
    lifeline_text_init(text, NULL, 0);
}

// Two digits at a time.
static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
    "555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

uint8_t *lifeline_write_digits(uint8_t *place, uint64_t number) {
    uint8_t digits[LIFELINE_DIGITS];
    uint8_t *start = digits + sizeof digits;
    while (number >= 100) {
        start -= 2;
        memcpy(start, digit_pairs + 2 * (number % 100), 2);
        number /= 100;
    }
    if (number >= 10) {
        start -= 2;
        memcpy(start, digit_pairs + 2 * number, 2);
    } else {
        start -= 1;
        *start = (uint8_t)('0' + number);
    }
    size_t count = (size_t)(digits + sizeof digits - start);
    memcpy(place, start, count);
    return place + count;
}

uint8_t *lifeline_write_padded(uint8_t *place, uint32_t number, int width) {
    uint8_t digits[LIFELINE_DIGITS];
    uint8_t *end = lifeline_write_digits(digits, number);
    for (int zeros = width - (int)(end - digits); zeros > 0; zeros -= 1) *place++ = '0';
    memcpy(place, digits, (size_t)(end - digits));
    return place + (end - digits);
}
