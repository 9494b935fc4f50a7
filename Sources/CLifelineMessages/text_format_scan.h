// Reads the tokens of text format.
#ifndef LIFELINE_TEXT_FORMAT_SCAN_H
#define LIFELINE_TEXT_FORMAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_message.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// A position in text.
typedef struct LifelineTextInput {
    const uint8_t *_Nullable next;
    const uint8_t *_Nullable end;
} LifelineTextInput;

// A part of the text.
typedef struct LifelineTextToken {
    const uint8_t *bytes;
    size_t count;
} LifelineTextToken;

// Skips spaces, ends of lines, and comments.
void lifeline_text_skip_space(LifelineTextInput *input);

// The next byte that is no space; 0 at the end.
static inline uint8_t lifeline_text_peek(LifelineTextInput *input) {
    lifeline_text_skip_space(input);
    return input->next == input->end ? 0 : *input->next;
}

// Takes `byte` if it is the next one that is no space.
static inline bool lifeline_text_take(LifelineTextInput *input, char byte) {
    if (lifeline_text_peek(input) != (uint8_t)byte || input->next == input->end) return false;
    input->next += 1;
    return true;
}

static inline bool lifeline_text_is(LifelineTextToken token, const char *word) {
    return token.count == strlen(word) && memcmp(token.bytes, word, token.count) == 0;
}

// Whether a byte may be part of a name or an integer: a letter, a digit, or an underscore.
bool lifeline_text_is_word(uint8_t byte);

// Reads a name or an integer.
bool lifeline_text_read_word(LifelineTextInput *input, LifelineTextToken *token);

// Reads the name of a field, or its number.
bool lifeline_text_read_name(LifelineTextInput *input, LifelineTextToken *token);

// Reads a number without its sign, or a name of one.
bool lifeline_text_read_number(LifelineTextInput *input, LifelineTextToken *token);

// Reads the name of an extension or the type's URL of a google.protobuf.Any, after its opening bracket, with the
// closing one. There may be spaces and comments beside its dots and slashes: see lifeline_text_copy_url.
bool lifeline_text_read_url(LifelineTextInput *input, LifelineTextToken *token);

// Copies the name or URL without spaces and comments to memory of the token's size. Returns the bytes written.
size_t lifeline_text_copy_url(LifelineTextToken token, uint8_t *memory);

// Whether an URL reads as itself in brackets.
bool lifeline_text_is_url(LifelineTextToken token);

typedef enum LifelineTextIntegerKind {
    LIFELINE_TEXT_NO_INTEGER,
    LIFELINE_TEXT_TOO_LARGE,  // more than 64 bits
    LIFELINE_TEXT_INTEGER,
} LifelineTextIntegerKind;

// The integer in a word: decimal, hexadecimal after "0x", or octal after "0".
LifelineTextIntegerKind lifeline_text_integer(LifelineTextToken token, uint64_t *number);

// Whether a number is decimal, perhaps with a point, an exponent, and an "f" at its end, which is cut off.
bool lifeline_text_is_decimal(LifelineTextToken *token);

// In any case of letters: "inf" and "infinity", or "nan".
bool lifeline_text_is_infinity(LifelineTextToken token);
bool lifeline_text_is_nan(LifelineTextToken token);

// Moves past a literal, whose quote comes next, and tells how many bytes are between its quotes. False, with the
// position where it is wrong, when it does not end in its line, or an escape is malformed.
bool lifeline_text_skip_literal(LifelineTextInput *input, size_t *length);

// Appends the bytes of a literal at memory[*count], and moves past it. False when it is malformed.
bool lifeline_text_read_literal(LifelineTextInput *input, uint8_t *memory, size_t *count);

// Moves past the value of a field: a colon, if there is one, and a scalar, a message, or a list of either.
//
// Returns LIFELINE_TOO_DEEP if more than `depth` messages are nested, and LIFELINE_SYNTAX when it is malformed.
LifelineStatus lifeline_text_skip_value(LifelineTextInput *input, uint32_t depth);

LIFELINE_ASSUME_NONNULL_END

#endif
