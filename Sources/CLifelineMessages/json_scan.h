// Reads the tokens of JSON (RFC 8259).
#ifndef LIFELINE_JSON_SCAN_H
#define LIFELINE_JSON_SCAN_H

#include <string.h>

#include "lifeline_json.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

LIFELINE_ASSUME_NONNULL_BEGIN

// A position in JSON text, which is UTF-8.
typedef struct LifelineJSONInput {
    const uint8_t *_Nullable next;
    const uint8_t *_Nullable end;
} LifelineJSONInput;

// A string as it stands between its quotes.
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

static inline void lifeline_json_skip_space(LifelineJSONInput *input) {
    while (input->next != input->end) {
        uint8_t byte = *input->next;
        if (byte > ' ' || (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t')) return;
        input->next += 1;
    }
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

// Whether a byte stands for itself in a string.
static inline bool lifeline_json_is_plain(uint8_t byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

#if defined(__SSE2__)
// A bit for each of sixteen bytes that does not.
static inline uint32_t lifeline_json_special(__m128i sixteen) {
    __m128i quote = _mm_cmpeq_epi8(sixteen, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(sixteen, _mm_set1_epi8('\\'));
    // Without a sign: the smaller of a control character and 0x1F is itself.
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(sixteen, _mm_set1_epi8(0x1F)), sixteen);
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));
}
#endif

// Reads a string, whose quote comes next. Escapes are checked as well. On failure the position is where it is wrong.
bool lifeline_json_read_string(LifelineJSONInput *input, LifelineJSONString *string);

// Writes the string without escapes to `place`, which has room for `string.count` bytes. Returns how many it wrote.
size_t lifeline_json_unescape(LifelineJSONString string, uint8_t *place);

// Reads a number. On failure the position is where it is wrong.
bool lifeline_json_read_number(LifelineJSONInput *input, LifelineJSONNumber *number);

// The number as an integer; false when it is none, or its absolute value has more than 64 bits.
bool lifeline_json_integer(LifelineJSONNumber number, uint64_t *absolute);

// The number that the `count` bytes at `text` are, which lifeline_json_read_number has read as `number`. False when it
// is too large, or there is no memory.
bool lifeline_json_double(LifelineJSONNumber number, const uint8_t *text, size_t count, double *value);
bool lifeline_json_float(LifelineJSONNumber number, const uint8_t *text, size_t count, float *value);

LIFELINE_ASSUME_NONNULL_END

#endif
