// Prints the structs that tables describe in protobuf's text format, and parses them.
// The specification: https://protobuf.dev/reference/protobuf/textformat-spec
#ifndef LIFELINE_TEXT_FORMAT_H
#define LIFELINE_TEXT_FORMAT_H

#include "lifeline_json.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineTextPrintOptions {
    LifelineWriteDouble *write_double;
    LifelineWriteFloat *write_float;
    LifelineTypes types;      // of messages in google.protobuf.Any, and of extensions, which are printed in full
    uint32_t maximum_depth;   // how many messages may be nested below the first
    bool in_one_line;
    bool unknown_fields;      // by their numbers; else they are left out
} LifelineTextPrintOptions;

// Appends a quoted literal, on one line. Text keeps its letters where it is UTF-8; whatever a terminal obeys, ends the
// line or changes the order in which it is read, is escaped byte by byte. False when malloc has no memory.
bool lifeline_text_append_literal(LifelineText *text, const uint8_t *_Nullable bytes, size_t count, bool is_text);

// Appends `message` in text format, a field a line or all in one. Fields are in the order of their numbers, map entries
// in that of their keys. Whatever a terminal obeys is escaped. Recurses as deep as the message. On failure the text is
// unspecified.
bool lifeline_text_print(
    const LifelineMessageTable *table, const void *message, const LifelineTextPrintOptions *options,
    LifelineText *text, LifelineFailure *failure);

typedef struct LifelineTextParseOptions {
    LifelineTypes types;         // of messages in google.protobuf.Any, and of extensions
    uint32_t maximum_depth;      // how many messages may be nested below the first
    bool ignore_unknown_fields;  // and unknown extensions
} LifelineTextParseOptions;

// Parses text format into `message`, in which every field is absent. The arena's budget bounds the memory; nothing
// refers to `bytes` afterwards. The cost is linear in `count`, and n log n for entries of maps that arrive unsorted.
// Recurses as deep as the options allow. On failure `message` holds a valid, unspecified part of the input, and the
// failure's offset is where in `bytes` it stopped.
bool lifeline_text_parse(
    const LifelineMessageTable *table, void *message, const void *_Nullable bytes, size_t count, LifelineArena *arena,
    const LifelineTextParseOptions *options, LifelineFailure *failure);

LIFELINE_ASSUME_NONNULL_END

#endif
