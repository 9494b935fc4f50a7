// Shared by the fuzzers of JSON and of text format. Their inputs have the format of fuzz_input.h, with a text in place
// of the encoded message. Byte 2 chooses options:
//
//   01   whether unknown fields are ignored
//   02   whether messages in a google.protobuf.Any are of no known type, and no extensions are known
//   f0   a bit for each option of printing
#ifndef FUZZ_TEXTUAL_H
#define FUZZ_TEXTUAL_H

#include "fuzz_input.h"
#include "lifeline_json.h"

typedef struct FuzzTextualOptions {
    uint32_t maximum_depth;
    bool ignores_unknown;
    LifelineTypes types;
    uint8_t printing;  // four bits
} FuzzTextualOptions;

typedef struct FuzzFormat {
    // Whether the format allows these bytes; parsing has to refuse others.
    bool (*is_text)(const uint8_t *bytes, size_t count);
    // Parses all of the bytes into `message`.
    bool (*parse)(FuzzMessage *message, const uint8_t *bytes, size_t count, const FuzzTextualOptions *options);
    bool (*print)(
        const FuzzMessage *message, const FuzzTextualOptions *options, LifelineText *text, LifelineFailure *failure);
    // Whether printing may lose a part of the text's content; NULL if it never does.
    bool (*may_lose)(const uint8_t *bytes, size_t count, const FuzzTextualOptions *options);
} FuzzFormat;

// Parses an input, prints it if it was accepted, and parses the result again. Truncates the text, and limits the
// memory.
int fuzz_textual(const FuzzFormat *format, const uint8_t *data, size_t size);

// Write numbers that read as the value, as the printers need it.
size_t fuzz_write_double(double value, uint8_t *text);
size_t fuzz_write_float(float value, uint8_t *text);

#endif
