// Reads the tokens of JSON (RFC 8259).
#ifndef LIFELINE_JSON_SCAN_H
#define LIFELINE_JSON_SCAN_H

#include <string.h>

#include "json_blocks.h"
#include "json_digits.h"
#include "lifeline_json.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// A position in JSON text.
typedef struct LifelineJSONInput {
    const uint8_t *_Nullable start;
    const uint8_t *_Nullable next;
    const uint8_t *_Nullable end;
} LifelineJSONInput;

// A string between its quotes, with its escapes.
typedef struct LifelineJSONString {
    const uint8_t *bytes;
    size_t count;
    bool has_escapes;  // some of the bytes are escapes: see lifeline_json_unescape
} LifelineJSONString;

// A number of decimal digits: `digits` times ten to the power of `exponent`.
typedef struct LifelineJSONNumber {
    bool is_negative;
    bool is_full;     // a digit did not fit into `digits`
    bool is_exact;    // all of those that did not fit were zeros
    uint64_t digits;
    int64_t exponent;
} LifelineJSONNumber;

// Skips spaces between tokens.
void lifeline_json_skip_spaces(LifelineJSONInput *input);

static inline void lifeline_json_skip_space(LifelineJSONInput *input) {
    if (input->next != input->end && *input->next <= ' ') lifeline_json_skip_spaces(input);
}

// The next byte that is no space; 0 at the end.
static inline uint8_t lifeline_json_peek(LifelineJSONInput *input) {
    lifeline_json_skip_space(input);
    return input->next == input->end ? 0 : *input->next;
}

// Takes `byte` if it is the next one that is no space.
static inline bool lifeline_json_take(LifelineJSONInput *input, char byte) {
    if (lifeline_json_peek(input) != (uint8_t)byte) return false;
    input->next += 1;
    return true;
}

// Takes `null`, `true` or `false`, if that comes next.
static inline bool lifeline_json_take_literal(LifelineJSONInput *input, const char *literal) {
    if (lifeline_json_peek(input) != (uint8_t)*literal) return false;
    size_t count = strlen(literal);
    if ((size_t)(input->end - input->next) < count || memcmp(input->next, literal, count) != 0) return false;
    input->next += count;
    return true;
}

// Reads a string, whose quote comes next. Escapes and UTF-8 are checked as well. On failure the position is where it is
// wrong, or the start of a string that is not UTF-8.
bool lifeline_json_read_any_string(LifelineJSONInput *input, LifelineJSONString *string);

static inline bool lifeline_json_read_string(LifelineJSONInput *input, LifelineJSONString *string) {
    const uint8_t *start = input->next + 1;
    bool is_ascii = true;
    const uint8_t *end = lifeline_json_skip_plain(input->start, start, input->end, &is_ascii);
    // Most strings are ASCII without escapes.
    if (!is_ascii || end == input->end || *end != '"') return lifeline_json_read_any_string(input, string);
    *string = (LifelineJSONString){.bytes = start, .count = (size_t)(end - start)};
    input->next = end + 1;
    return true;
}

// Writes the string without escapes to `place`, which has room for `string.count` bytes. Returns how many it wrote.
size_t lifeline_json_unescape(LifelineJSONString string, uint8_t *place);

// Reads a number. On failure the position is where it is wrong.
bool lifeline_json_read_number(LifelineJSONInput *input, LifelineJSONNumber *number);

// Reads an integer of at most 64 bits in its usual form: digits, perhaps in quotes. False when something else comes
// next, which may be the same number in another form: then it has only passed over space.
static inline bool lifeline_json_read_integer(LifelineJSONInput *input, bool *is_negative, uint64_t *absolute) {
    lifeline_json_skip_space(input);
    const uint8_t *next = input->next;
    const uint8_t *end = input->end;
    if (end - next < 3) return false;
    bool is_quoted = *next == '"';
    next += is_quoted;
    *is_negative = *next == '-';
    next += *is_negative;
    const uint8_t *first = next;
    next = lifeline_read_digits(next, end, absolute);
    if (next == NULL || next == first || next == end || (*first == '0' && next != first + 1)) return false;
    bool is_all = is_quoted ? *next == '"' : *next != '.' && (*next | 0x20) != 'e';
    if (is_all) input->next = next + is_quoted;
    return is_all;
}

// The number as an integer; false when it is none, or its absolute value has more than 64 bits.
bool lifeline_json_integer(LifelineJSONNumber number, uint64_t *absolute);

// The number that the `count` bytes at `text` are, which lifeline_json_read_number has read as `number`. False when it
// is too large, or there is no memory.
bool lifeline_json_double(LifelineJSONNumber number, const uint8_t *text, size_t count, double *value);
bool lifeline_json_float(LifelineJSONNumber number, const uint8_t *text, size_t count, float *value);

LIFELINE_ASSUME_NONNULL_END

#endif
