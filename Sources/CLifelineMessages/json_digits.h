// Reads decimal digits, eight at a time.
#ifndef LIFELINE_JSON_DIGITS_H
#define LIFELINE_JSON_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// How many of eight bytes, the first one lowest, are digits before the first other byte. They become their values.
static inline size_t lifeline_digit_prefix(uint64_t *eight) {
    *eight ^= 0x3030303030303030;
    // The top bit of each byte over 9, up to the first one: a carry can only spoil those after it.
    uint64_t others = (*eight | (*eight + 0x7676767676767676)) & 0x8080808080808080;
    return others == 0 ? 8 : (size_t)__builtin_ctzll(others) / 8;
}

// The number that eight digits are, the first one lowest.
static inline uint64_t lifeline_eight_digits(uint64_t eight) {
    eight = eight * 10 + (eight >> 8);  // pairs of digits, in every other byte
    uint64_t first_and_third = (eight & 0x000000FF000000FF) * (100 + (UINT64_C(1000000) << 32));
    uint64_t second_and_fourth = (eight >> 16 & 0x000000FF000000FF) * (1 + (UINT64_C(10000) << 32));
    return (first_and_third + second_and_fourth) >> 32;
}

// The number that up to eight digits are. `*count` is how many there are.
static inline uint64_t lifeline_some_digits(const uint8_t *next, const uint8_t *end, size_t *count) {
    uint64_t eight = 0;
    if (end - next >= (ptrdiff_t)sizeof eight) {
        memcpy(&eight, next, sizeof eight);
    } else {
        memcpy(&eight, next, (size_t)(end - next));
    }
    *count = lifeline_digit_prefix(&eight);
    return *count == 0 ? 0 : lifeline_eight_digits(eight << (64 - 8 * *count));  // after zeros
}

// Reads digits. Returns the first byte after them, or NULL if the number has more than 64 bits.
static inline const uint8_t *_Nullable lifeline_read_digits(
    const uint8_t *next, const uint8_t *end, uint64_t *number) {
    static const uint32_t powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    size_t count;
    *number = lifeline_some_digits(next, end, &count);
    next += count;
    while (count == 8) {
        uint64_t digits = lifeline_some_digits(next, end, &count);
        next += count;
        bool is_too_large = __builtin_mul_overflow(*number, (uint64_t)powers_of_ten[count], number)
                            || __builtin_add_overflow(*number, digits, number);
        if (is_too_large) return NULL;
    }
    return next;
}

LIFELINE_ASSUME_NONNULL_END

#endif
