// Prints the structs that tables describe as JSON, and parses them.
// ProtoJSON: https://protobuf.dev/programming-guides/json
#ifndef LIFELINE_JSON_H
#define LIFELINE_JSON_H

#include "lifeline_message.h"
#include "lifeline_types.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Writes the shortest decimal number that reads as `value`, which is finite, in at most 32 bytes. Returns how many.
typedef size_t LifelineWriteDouble(double value, uint8_t *text);
typedef size_t LifelineWriteFloat(float value, uint8_t *text);

// Text that grows at its end.
typedef struct LifelineText {
    uint8_t *_Nullable memory;
    size_t count;
    size_t capacity;
    bool owns_memory;  // whether the memory is from malloc, and no longer the caller's
} LifelineText;

// Starts with `memory`, which the caller owns. When it is full, the text goes on in memory of its own.
static inline void lifeline_text_init(LifelineText *text, void *_Nullable memory, size_t capacity) {
    text->memory = (uint8_t *)memory;
    text->count = 0;
    text->capacity = capacity;
    text->owns_memory = false;
}

// Frees the memory that the text owns, if any.
void lifeline_text_destroy(LifelineText *text);

// False when malloc has no memory.
bool lifeline_text_append(LifelineText *text, const void *bytes, size_t count);

typedef struct LifelineJSONPrintOptions {
    LifelineWriteDouble *write_double;
    LifelineWriteFloat *write_float;
    LifelineTypes types;      // of messages in google.protobuf.Any, and of extensions
    uint32_t maximum_depth;   // how many messages may be nested below the first
    bool enums_as_numbers;
    bool int64_as_numbers;    // without the quotes that keep other parsers from rounding them
    bool proto_names;         // names of fields as in the .proto file
    bool absent_fields;       // fields without presence are printed when they have their default, too
} LifelineJSONPrintOptions;

// Appends `message` as JSON, in one line. Fields are in the order of their numbers, map entries in that of their keys.
// Recurses as deep as the message. On failure the text is unspecified.
bool lifeline_json_print(
    const LifelineMessageTable *table, const void *message, const LifelineJSONPrintOptions *options,
    LifelineText *text, LifelineFailure *failure);

typedef struct LifelineJSONParseOptions {
    LifelineTypes types;           // of messages in google.protobuf.Any, and of extensions
    uint32_t maximum_depth;        // how many objects and arrays may be nested below the first
    bool ignore_unknown_fields;    // and unknown names of enum values
} LifelineJSONParseOptions;

// Whether the bytes are UTF-8, as JSON has to be.
bool lifeline_json_is_utf8(const void *_Nullable bytes, size_t count);

// Parses the JSON value that begins at `*offset`, perhaps after spaces, into `message`, in which every field is absent.
// The offset is after the value afterwards, and nothing refers to the bytes. A value that is not UTF-8 is refused, with
// any status: lifeline_json_is_utf8 tells whether that is the reason.
//
// The arena's budget bounds the memory. The cost is linear in the number of bytes, and n log n for entries of maps that
// arrive unsorted. Recurses as deep as the options allow. On failure `message` holds a valid, unspecified part of the
// input, and the failure's offset is where in `bytes` it stopped.
bool lifeline_json_parse(
    const LifelineMessageTable *table, void *message, const void *_Nullable bytes, size_t count, size_t *offset,
    LifelineArena *arena, const LifelineJSONParseOptions *options, LifelineFailure *failure);

LIFELINE_ASSUME_NONNULL_END

#endif
