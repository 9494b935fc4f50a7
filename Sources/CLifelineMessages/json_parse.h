// Shared by the files that parse JSON.
#ifndef LIFELINE_JSON_PARSE_H
#define LIFELINE_JSON_PARSE_H

#include "fields.h"
#include "json_scan.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// One call of lifeline_json_parse.
typedef struct LifelineJSONParser {
    LifelineJSONInput input;
    LifelineArena *arena;
    const LifelineJSONParseOptions *options;
    LifelineFailure *failure;
    uint32_t depth;     // how many objects and arrays may still be nested
    uint32_t messages;  // how many messages may: a text may have more of them than brackets
    size_t search_left;  // how many bytes may still be read twice: see find_type in json_parse_any.c
} LifelineJSONParser;

// The outcome of reading a value.
typedef enum LifelineJSONStep {
    LIFELINE_JSON_FAILED,
    LIFELINE_JSON_STORED,
    LIFELINE_JSON_IGNORED,  // the name of an enum value is unknown, and the options say to ignore it
} LifelineJSONStep;

// Fails at the given place. Returns false.
bool lifeline_json_fail_at(LifelineJSONParser *parser, LifelineStatus status, const uint8_t *_Nullable place);

// Fails at the place of the input. Returns false.
static inline bool lifeline_json_fail(LifelineJSONParser *parser, LifelineStatus status) {
    return lifeline_json_fail_at(parser, status, parser->input.next);
}

// Names the message and the field, or 0, of a failure, unless a message below has named its own. Returns false.
bool lifeline_json_fail_in(
    LifelineJSONParser *parser, const LifelineMessageTable *table, uint32_t field_number);

// Fails at a value of another kind than the expected one. Malformed JSON is told from it by its first letters. Returns
// false.
bool lifeline_json_fail_at_value(LifelineJSONParser *parser);

// Takes a byte of JSON's structure, or fails.
static inline bool lifeline_json_expect(LifelineJSONParser *parser, char byte) {
    return lifeline_json_take(&parser->input, byte) || lifeline_json_fail(parser, LIFELINE_SYNTAX);
}

// Behind an element of an object or array: whether another one follows. Fails when neither a comma nor `end` does:
// then `*failed` is set.
static inline bool lifeline_json_continues(LifelineJSONParser *parser, char end, bool *failed) {
    if (lifeline_json_take(&parser->input, ',')) return true;
    *failed = !lifeline_json_expect(parser, end);
    return false;
}

// Goes one object or array deeper; the caller raises the depth again.
static inline bool lifeline_json_enter(LifelineJSONParser *parser) {
    if (parser->depth == 0) return lifeline_json_fail(parser, LIFELINE_TOO_DEEP);
    parser->depth -= 1;
    return true;
}

// Reads a string, without escapes: it is in the input, or in the arena.
bool lifeline_json_parse_string(LifelineJSONParser *parser, LifelineJSONString *string);

// Reads the key of an object's member and the colon after it.
bool lifeline_json_parse_key(LifelineJSONParser *parser, LifelineJSONString *key);

// Reads any value, and checks that it is well-formed.
bool lifeline_json_skip_value(LifelineJSONParser *parser);

// Reads a singular value, or an element, to `value` in a struct or an array. `null` is such a value only for types
// that can hold it.
LifelineJSONStep lifeline_json_parse_value(LifelineJSONParser *parser, const LifelineField *field, void *value);

// Reads an array of the field's elements.
bool lifeline_json_parse_elements(LifelineJSONParser *parser, const LifelineField *field, void *message);

// Reads an object of the map's entries.
bool lifeline_json_parse_map(LifelineJSONParser *parser, const LifelineField *field, void *message);

// Reads a message of any kind.
bool lifeline_json_parse_message(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message);

// Reads an object's members as the fields of a message; one with the key "@type" is passed over in a
// google.protobuf.Any.
bool lifeline_json_parse_fields(
    LifelineJSONParser *parser, const LifelineMessageTable *table, void *message, bool is_in_any);

// Reads a message that has a form of its own.
bool lifeline_json_parse_well_known(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message);

bool lifeline_json_parse_any(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message);

// Stores a copy of the bytes as a string's or bytes' value.
bool lifeline_json_store_copy(LifelineJSONParser *parser, const uint8_t *_Nullable bytes, size_t count, void *value);

static inline bool lifeline_json_key_is(LifelineJSONString key, const char *name) {
    return key.count == strlen(name) && memcmp(key.bytes, name, key.count) == 0;
}

LIFELINE_ASSUME_NONNULL_END

#endif
