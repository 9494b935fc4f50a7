// Parses messages from JSON. json_parse_well_known.c and json_parse_any.c parse those of google.protobuf that have a
// form of their own; json_scan.c reads the tokens.
#include "json_parse.h"

#include "array.h"
#include "base64.h"
#include "extensions.h"
#include "map_order.h"
#include "lifeline_names.h"
#include "utf8.h"

// MARK: Failures

bool lifeline_json_fail_at(LifelineJSONParser *parser, LifelineStatus status, const uint8_t *place) {
    parser->failure->status = status;
    parser->failure->offset = (size_t)(place - parser->input.start);
    return false;
}

bool lifeline_json_fail_at_value(LifelineJSONParser *parser) {
    uint8_t first = lifeline_json_peek(&parser->input);
    LifelineJSONInput copy = parser->input;
    bool begins_value = (first != 0 && strchr("{[\"-0123456789", first) != NULL)
                        || lifeline_json_take_literal(&copy, "true") || lifeline_json_take_literal(&copy, "false")
                        || lifeline_json_take_literal(&copy, "null");
    return lifeline_json_fail(parser, begins_value ? LIFELINE_WRONG_KIND : LIFELINE_SYNTAX);
}

bool lifeline_json_fail_in(
    LifelineJSONParser *parser, const LifelineMessageTable *table, uint32_t field_number) {
    if (parser->failure->message != NULL) return false;
    parser->failure->message = table;
    parser->failure->field_number = field_number;
    return false;
}

// MARK: Structure

bool lifeline_json_parse_string(LifelineJSONParser *parser, LifelineJSONString *string) {
    if (lifeline_json_peek(&parser->input) != '"') return lifeline_json_fail_at_value(parser);
    if (!lifeline_json_read_string(&parser->input, string)) return lifeline_json_fail(parser, LIFELINE_SYNTAX);
    if (!string->has_escapes) return true;
    uint8_t *memory = lifeline_arena_allocate(parser->arena, string->count);
    if (memory == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    size_t count = lifeline_json_unescape(*string, memory);
    *string = (LifelineJSONString){.bytes = memory, .count = count};
    return true;
}

bool lifeline_json_parse_key(LifelineJSONParser *parser, LifelineJSONString *key) {
    if (lifeline_json_peek(&parser->input) != '"') return lifeline_json_fail(parser, LIFELINE_SYNTAX);
    return lifeline_json_parse_string(parser, key) && lifeline_json_expect(parser, ':');
}

static bool skip_members(LifelineJSONParser *parser) {
    if (lifeline_json_take(&parser->input, '}')) return true;
    bool failed = false;
    do {
        LifelineJSONString key;
        bool has_key = lifeline_json_peek(&parser->input) == '"' && lifeline_json_read_string(&parser->input, &key);
        if (!has_key) return lifeline_json_fail(parser, LIFELINE_SYNTAX);
        if (!lifeline_json_expect(parser, ':') || !lifeline_json_skip_value(parser)) return false;
    } while (lifeline_json_continues(parser, '}', &failed));
    return !failed;
}

static bool skip_elements(LifelineJSONParser *parser) {
    if (lifeline_json_take(&parser->input, ']')) return true;
    bool failed = false;
    do {
        if (!lifeline_json_skip_value(parser)) return false;
    } while (lifeline_json_continues(parser, ']', &failed));
    return !failed;
}

bool lifeline_json_skip_value(LifelineJSONParser *parser) {
    LifelineJSONInput *input = &parser->input;
    uint8_t first = lifeline_json_peek(input);
    if (first == '{' || first == '[') {
        if (!lifeline_json_enter(parser)) return false;
        input->next += 1;
        bool skipped = first == '{' ? skip_members(parser) : skip_elements(parser);
        parser->depth += 1;
        return skipped;
    }
    LifelineJSONString string;
    LifelineJSONNumber number;
    bool skipped = first == '"' ? lifeline_json_read_string(input, &string)
                   : first == 't' || first == 'f' || first == 'n'
                       ? lifeline_json_take_literal(input, first == 't' ? "true" : first == 'f' ? "false" : "null")
                       : lifeline_json_read_number(input, &number);
    return skipped || lifeline_json_fail(parser, LIFELINE_SYNTAX);
}

// MARK: Numbers

// The largest absolute values of positive and of negative integers of each type.
#define SIGNED(maximum) {maximum, (uint64_t)(maximum) + 1}
#define UNSIGNED(maximum) {maximum, 0}
static const uint64_t largest_integers[][2] = {
    [LIFELINE_TYPE_INT64] = SIGNED(INT64_MAX),
    [LIFELINE_TYPE_UINT64] = UNSIGNED(UINT64_MAX),
    [LIFELINE_TYPE_INT32] = SIGNED(INT32_MAX),
    [LIFELINE_TYPE_FIXED64] = UNSIGNED(UINT64_MAX),
    [LIFELINE_TYPE_FIXED32] = UNSIGNED(UINT32_MAX),
    [LIFELINE_TYPE_UINT32] = UNSIGNED(UINT32_MAX),
    [LIFELINE_TYPE_ENUM] = SIGNED(INT32_MAX),
    [LIFELINE_TYPE_SFIXED32] = SIGNED(INT32_MAX),
    [LIFELINE_TYPE_SFIXED64] = SIGNED(INT64_MAX),
    [LIFELINE_TYPE_SINT32] = SIGNED(INT32_MAX),
    [LIFELINE_TYPE_SINT64] = SIGNED(INT64_MAX),
};

// Stores an integer of the given type; false when the type has no room for it.
static inline bool store_integer(int type, bool is_negative, uint64_t absolute, void *value) {
    if (absolute > largest_integers[type][is_negative]) return false;
    lifeline_store_scalar(value, lifeline_type_size(type), is_negative ? 0 - absolute : absolute);
    return true;
}

// Stores the number that the text from `start` to `end` is. False when the type has no room for it.
static bool store_number(
    int type, LifelineJSONNumber number, const uint8_t *start, const uint8_t *end, void *value) {
    size_t count = (size_t)(end - start);
    if (type == LIFELINE_TYPE_DOUBLE) {
        double result;
        if (!lifeline_json_double(number, start, count, &result)) return false;
        memcpy(value, &result, sizeof result);
        return true;
    }
    if (type == LIFELINE_TYPE_FLOAT) {
        float result;
        if (!lifeline_json_float(number, start, count, &result)) return false;
        memcpy(value, &result, sizeof result);
        return true;
    }
    uint64_t absolute;
    return lifeline_json_integer(number, &absolute) && store_integer(type, number.is_negative, absolute, value);
}

// NaN and the infinities, which only strings can be.
static bool special_number(LifelineJSONString text, double *number) {
    if (lifeline_json_key_is(text, "NaN")) {
        *number = __builtin_nan("");
    } else if (lifeline_json_key_is(text, "Infinity")) {
        *number = __builtin_inf();
    } else if (lifeline_json_key_is(text, "-Infinity")) {
        *number = -__builtin_inf();
    } else {
        return false;
    }
    return true;
}

// A number in quotes, which begin at `place`.
static bool parse_number_in(
    LifelineJSONParser *parser, int type, LifelineJSONString text, const uint8_t *place, void *value) {
    double special;
    if (type == LIFELINE_TYPE_DOUBLE && special_number(text, &special)) {
        memcpy(value, &special, sizeof special);
        return true;
    }
    if (type == LIFELINE_TYPE_FLOAT && special_number(text, &special)) {
        float rounded = (float)special;
        memcpy(value, &rounded, sizeof rounded);
        return true;
    }
    LifelineJSONInput input = {.start = text.bytes, .next = text.bytes, .end = text.bytes + text.count};
    bool begins = text.count > 0 && (*text.bytes == '-' || (*text.bytes >= '0' && *text.bytes <= '9'));
    LifelineJSONNumber number;
    if (!begins || !lifeline_json_read_number(&input, &number) || input.next != input.end) {
        return lifeline_json_fail_at(parser, LIFELINE_WRONG_KIND, place);
    }
    if (store_number(type, number, text.bytes, input.end, value)) return true;
    return lifeline_json_fail_at(parser, LIFELINE_OUT_OF_RANGE, place);
}

// A number of any form.
__attribute__((noinline)) static bool parse_any_number(LifelineJSONParser *parser, int type, void *value) {
    uint8_t first = lifeline_json_peek(&parser->input);
    const uint8_t *start = parser->input.next;
    if (first == '"') {
        LifelineJSONString text;
        return lifeline_json_parse_string(parser, &text) && parse_number_in(parser, type, text, start, value);
    }
    if (first != '-' && (first < '0' || first > '9')) return lifeline_json_fail_at_value(parser);
    LifelineJSONNumber number;
    if (!lifeline_json_read_number(&parser->input, &number)) return lifeline_json_fail(parser, LIFELINE_SYNTAX);
    if (store_number(type, number, start, parser->input.next, value)) return true;
    return lifeline_json_fail_at(parser, LIFELINE_OUT_OF_RANGE, start);
}

static bool parse_integer(LifelineJSONParser *parser, int type, void *value) {
    const uint8_t *start = parser->input.next;
    bool is_negative;
    uint64_t absolute;
    if (lifeline_json_read_integer(&parser->input, &is_negative, &absolute)) {
        if (store_integer(type, is_negative, absolute, value)) return true;
        parser->input.next = start;
    }
    return parse_any_number(parser, type, value);
}

// MARK: Text and bytes

bool lifeline_json_store_copy(LifelineJSONParser *parser, const uint8_t *bytes, size_t count, void *value) {
    uint8_t *memory = NULL;
    if (count > 0) {
        memory = lifeline_arena_allocate_inline(parser->arena, count);
        if (memory == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
        memcpy(memory, bytes, count);
    }
    lifeline_store_bytes(value, memory, count);
    return true;
}

static bool parse_text(LifelineJSONParser *parser, void *value) {
    LifelineJSONString string;
    if (lifeline_json_peek(&parser->input) != '"') return lifeline_json_fail_at_value(parser);
    if (!lifeline_json_read_string(&parser->input, &string)) return lifeline_json_fail(parser, LIFELINE_SYNTAX);
    if (!string.has_escapes) return lifeline_json_store_copy(parser, string.bytes, string.count, value);
    uint8_t *memory = lifeline_arena_allocate(parser->arena, string.count);
    if (memory == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    size_t count = lifeline_json_unescape(string, memory);
    lifeline_arena_resize_last(parser->arena, memory, string.count, count);
    lifeline_store_bytes(value, memory, count);
    return true;
}

static bool parse_bytes(LifelineJSONParser *parser, void *value) {
    LifelineJSONString text;
    lifeline_json_skip_space(&parser->input);
    const uint8_t *place = parser->input.next;
    if (!lifeline_json_parse_string(parser, &text)) return false;
    // Padding is optional; where there is some, it fills up the last four letters.
    size_t count = text.count;
    while (count > 0 && text.count - count < 2 && text.bytes[count - 1] == '=') count -= 1;
    if (count != text.count && text.count % 4 != 0) return lifeline_json_fail_at(parser, LIFELINE_WRONG_KIND, place);
    if (count == 0) {
        lifeline_store_bytes(value, NULL, 0);
        return text.count == 0 || lifeline_json_fail_at(parser, LIFELINE_WRONG_KIND, place);
    }
    uint8_t *memory = lifeline_arena_allocate(parser->arena, count / 4 * 3 + 3);
    if (memory == NULL) return lifeline_json_fail_at(parser, LIFELINE_OUT_OF_MEMORY, place);
    int64_t decoded = lifeline_decode_base64(text.bytes, count, memory);
    if (decoded < 0) return lifeline_json_fail_at(parser, LIFELINE_WRONG_KIND, place);
    lifeline_arena_resize_last(parser->arena, memory, count / 4 * 3 + 3, (size_t)decoded);
    lifeline_store_bytes(value, memory, (size_t)decoded);
    return true;
}

// MARK: Names

static inline bool is_same_word(const uint8_t *left, const uint8_t *right, size_t size) {
    return memcmp(left, right, size) == 0;
}

// Whether all bytes are the same, of a name that is usually short: the last word may overlap the one before.
static inline bool is_same_name(const uint8_t *left, const uint8_t *right, size_t count) {
    if (count >= 8) {
        for (size_t index = 0; index + 8 < count; index += 8) {
            if (!is_same_word(left + index, right + index, 8)) return false;
        }
        return is_same_word(left + count - 8, right + count - 8, 8);
    }
    if (count >= 4) return is_same_word(left, right, 4) && is_same_word(left + count - 4, right + count - 4, 4);
    if (count >= 2) return is_same_word(left, right, 2) && is_same_word(left + count - 2, right + count - 2, 2);
    return count == 0 || *left == *right;
}

// Takes the key of the field at `index` and the colon after it, if they come next.
static inline bool take_key(LifelineJSONInput *input, const LifelineMessageTable *table, uint32_t index) {
    LifelineName name = table->names.names[2 * index + 1];
    const uint8_t *next = input->next;
    size_t count = name.count;
    if ((size_t)(input->end - next) < count + 3 || *next != '"') return false;
    if (!is_same_word(next + count + 1, (const uint8_t *)"\":", 2)) return false;
    if (!is_same_name(next + 1, (const uint8_t *)table->names.text + name.offset, count)) return false;
    input->next += count + 3;
    return true;
}

// Takes the key of one of the first few fields from `*index` on, if one comes next: most come in the order of the
// table, and some are left out.
static bool take_some_key(LifelineJSONInput *input, const LifelineMessageTable *table, int64_t *index) {
    enum { TRIES = 4 };
    for (int64_t end = *index + TRIES; *index < end && *index < table->field_count; *index += 1) {
        if (take_key(input, table, (uint32_t)*index)) return true;
    }
    return false;
}

static LifelineJSONStep parse_enum(LifelineJSONParser *parser, const LifelineField *field, void *value) {
    const LifelineEnum *enumeration = field->enumeration;
    bool is_null_value = enumeration != NULL && (enumeration->flags & LIFELINE_ENUM_NULL_VALUE) != 0;
    int32_t number = 0;
    if (is_null_value && lifeline_json_take_literal(&parser->input, "null")) {
        lifeline_store_scalar(value, sizeof number, 0);
        return LIFELINE_JSON_STORED;
    }
    uint8_t first = lifeline_json_peek(&parser->input);
    const uint8_t *place = parser->input.next;
    if (first != '"') {
        if (!parse_integer(parser, LIFELINE_TYPE_ENUM, &number)) return LIFELINE_JSON_FAILED;
        if (lifeline_is_closed_enum(field) && !lifeline_enum_knows(field, number)) {
            lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_ENUM_VALUE, place);
            return LIFELINE_JSON_FAILED;
        }
        lifeline_store_scalar(value, sizeof number, (uint32_t)number);
        return LIFELINE_JSON_STORED;
    }
    LifelineJSONString name;
    if (!lifeline_json_parse_string(parser, &name)) return LIFELINE_JSON_FAILED;
    if (enumeration == NULL || !lifeline_find_enum_value(enumeration, name.bytes, name.count, &number)) {
        if (parser->options->ignore_unknown_fields) return LIFELINE_JSON_IGNORED;
        lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_ENUM_VALUE, place);
        return LIFELINE_JSON_FAILED;
    }
    lifeline_store_scalar(value, sizeof number, (uint32_t)number);
    return LIFELINE_JSON_STORED;
}

// MARK: Values

static bool parse_bool(LifelineJSONParser *parser, void *value) {
    uint64_t bits = 1;
    if (!lifeline_json_take_literal(&parser->input, "true")) {
        if (!lifeline_json_take_literal(&parser->input, "false")) return lifeline_json_fail_at_value(parser);
        bits = 0;
    }
    lifeline_store_scalar(value, lifeline_type_size(LIFELINE_TYPE_BOOL), bits);
    return true;
}

static bool parse_submessage(LifelineJSONParser *parser, const LifelineField *field, void *value) {
    void *child = lifeline_message_create(field->message, parser->arena);
    if (child == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    if (!lifeline_json_parse_message(parser, field->message, child)) return false;
    lifeline_store_pointer(value, child);
    return true;
}

// In line, for fields have to be read in few calls.
LIFELINE_ALWAYS_INLINE LifelineJSONStep parse_value(
    LifelineJSONParser *parser, const LifelineField *field, void *value) {
    bool parsed;
    switch (field->type) {
        case LIFELINE_TYPE_ENUM: return parse_enum(parser, field, value);
        case LIFELINE_TYPE_BOOL: parsed = parse_bool(parser, value); break;
        case LIFELINE_TYPE_STRING: parsed = parse_text(parser, value); break;
        case LIFELINE_TYPE_BYTES: parsed = parse_bytes(parser, value); break;
        case LIFELINE_TYPE_MESSAGE: parsed = parse_submessage(parser, field, value); break;
        case LIFELINE_TYPE_DOUBLE:
        case LIFELINE_TYPE_FLOAT: parsed = parse_any_number(parser, field->type, value); break;
        default: parsed = parse_integer(parser, field->type, value); break;
    }
    return parsed ? LIFELINE_JSON_STORED : LIFELINE_JSON_FAILED;
}

LifelineJSONStep lifeline_json_parse_value(LifelineJSONParser *parser, const LifelineField *field, void *value) {
    return parse_value(parser, field, value);
}

bool lifeline_json_parse_elements(LifelineJSONParser *parser, const LifelineField *field, void *message) {
    if (lifeline_json_peek(&parser->input) != '[') return lifeline_json_fail_at_value(parser);
    if (!lifeline_json_enter(parser)) return false;
    parser->input.next += 1;
    bool failed = false;
    if (!lifeline_json_take(&parser->input, ']')) {
        do {
            size_t count = lifeline_count(field, message);
            // Parsed before there is room for it: what is allocated in between would keep the array from growing.
            uint64_t value[2] = {0, 0};
            LifelineJSONStep step = parse_value(parser, field, value);
            if (step == LIFELINE_JSON_FAILED) return false;
            if (step == LIFELINE_JSON_IGNORED) continue;
            void *place = lifeline_append(parser->arena, message, field, 1);
            if (place == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
            memcpy(place, value, lifeline_value_size(field));
            lifeline_set_count(field, message, count + 1);
        } while (lifeline_json_continues(parser, ']', &failed));
    }
    parser->depth += 1;
    return !failed;
}

// MARK: Maps

// Stores the key of a map's entry, which is always a string in JSON. It begins at `place`.
static bool store_key(
    LifelineJSONParser *parser, const LifelineField *field, LifelineJSONString key, const uint8_t *place,
    void *value) {
    if (field->type == LIFELINE_TYPE_BOOL) {
        bool is_true = lifeline_json_key_is(key, "true");
        if (!is_true && !lifeline_json_key_is(key, "false")) {
            return lifeline_json_fail_at(parser, LIFELINE_WRONG_KIND, place);
        }
        lifeline_store_scalar(value, lifeline_value_size(field), is_true ? 1 : 0);
        return true;
    }
    if (field->type != LIFELINE_TYPE_STRING) {
        return parse_number_in(parser, field->type, key, place, value);
    }
    return lifeline_json_store_copy(parser, key.bytes, key.count, value);
}

// Reads a member of an object as an entry of the map. Entries that do not ascend are noted.
static bool parse_entry(LifelineJSONParser *parser, const LifelineField *field, void *message, bool *is_sorted) {
    const LifelineMessageTable *table = field->message;
    LifelineJSONString key;
    lifeline_json_skip_space(&parser->input);
    const uint8_t *key_place = parser->input.next;
    if (!lifeline_json_parse_key(parser, &key)) return false;
    uint8_t *entry = lifeline_message_create(table, parser->arena);
    if (entry == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    if (!store_key(parser, &table->fields[0], key, key_place, entry + table->fields[0].offset)) return false;
    if (parser->messages == 0) return lifeline_json_fail(parser, LIFELINE_TOO_DEEP);
    parser->messages -= 1;
    LifelineJSONStep step = lifeline_json_parse_value(parser, &table->fields[1], entry + table->fields[1].offset);
    parser->messages += 1;
    if (step == LIFELINE_JSON_FAILED) return false;
    if (step == LIFELINE_JSON_IGNORED) return true;
    size_t count = lifeline_count(field, message);
    uint8_t *place = lifeline_append(parser->arena, message, field, 1);
    if (place == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    if (count > 0 && !lifeline_entries_ascend(field, place - sizeof(void *), entry)) *is_sorted = false;
    lifeline_store_pointer(place, entry);
    lifeline_set_count(field, message, count + 1);
    return true;
}

bool lifeline_json_parse_map(LifelineJSONParser *parser, const LifelineField *field, void *message) {
    if (lifeline_json_peek(&parser->input) != '{') return lifeline_json_fail_at_value(parser);
    if (!lifeline_json_enter(parser)) return false;
    const uint8_t *start = parser->input.next++;
    bool is_sorted = true;
    bool parsed = true;
    if (!lifeline_json_take(&parser->input, '}')) {
        bool failed = false;
        do {
            parsed = parse_entry(parser, field, message, &is_sorted);
        } while (parsed && lifeline_json_continues(parser, '}', &failed));
        parsed = parsed && !failed;
    }
    parser->depth += 1;
    if (is_sorted) return parsed;
    // Also after a failure: readers rely on the order.
    size_t count = lifeline_count(field, message);
    if (!lifeline_sort_entries(parser->arena, field, message)) {
        return parsed && lifeline_json_fail_at(parser, LIFELINE_OUT_OF_MEMORY, start);
    }
    if (!parsed) return false;
    return lifeline_count(field, message) == count || lifeline_json_fail_at(parser, LIFELINE_DUPLICATE_FIELD, start);
}

// MARK: Messages

static bool holds_null(const LifelineField *field) {
    if (field->type == LIFELINE_TYPE_MESSAGE) return field->message->well_known == LIFELINE_WELL_KNOWN_VALUE;
    return field->enumeration != NULL && (field->enumeration->flags & LIFELINE_ENUM_NULL_VALUE) != 0;
}

static bool parse_repeated_field(LifelineJSONParser *parser, const LifelineField *field, void *message) {
    if (lifeline_json_take_literal(&parser->input, "null")) return true;
    return field->presence == LIFELINE_PRESENCE_MAP ? lifeline_json_parse_map(parser, field, message)
                                                    : lifeline_json_parse_elements(parser, field, message);
}

// Reads a member of an object as the field's value. Null means that the field is absent.
LIFELINE_ALWAYS_INLINE bool parse_field(LifelineJSONParser *parser, const LifelineField *field, void *message) {
    if (lifeline_is_repeated(field)) return parse_repeated_field(parser, field, message);
    bool may_be_null = lifeline_json_peek(&parser->input) == 'n' && !holds_null(field);
    if (may_be_null && lifeline_json_take_literal(&parser->input, "null")) return true;
    bool is_second_member = field->presence == LIFELINE_PRESENCE_ONEOF
                            && lifeline_load32(lifeline_at(message, field->quantifier_offset)) != 0;
    if (is_second_member) return lifeline_json_fail(parser, LIFELINE_DUPLICATE_FIELD);
    LifelineJSONStep step = parse_value(parser, field, lifeline_mutable_at(message, field->offset));
    if (step == LIFELINE_JSON_STORED) lifeline_mark_present(field, message);
    return step != LIFELINE_JSON_FAILED;
}

// The fields of a message that have come.
typedef struct SeenFields {
    uint64_t first;              // a bit for each of the first 64
    uint64_t *_Nullable others;  // of those after them, when one has been read
    LifelineExtensions extensions;
    bool type;                   // "@type" of a google.protobuf.Any
    uint32_t guess;              // the index of the field that probably comes next
} SeenFields;

// The word with the bit of a field after the first 64; NULL if there is no memory.
static uint64_t *_Nullable seen_word(
    LifelineJSONParser *parser, SeenFields *seen, const LifelineMessageTable *table, size_t index) {
    if (seen->others == NULL) {
        size_t size = (table->field_count - 1) / 64 * sizeof(uint64_t);
        seen->others = lifeline_arena_allocate(parser->arena, size);
        if (seen->others == NULL) return NULL;
        memset(seen->others, 0, size);
    }
    return &seen->others[index / 64 - 1];
}

// Notes that a field has been read. Fails if it was read before.
static inline bool note_field(
    LifelineJSONParser *parser, SeenFields *seen, const LifelineMessageTable *table, size_t index) {
    uint64_t *word = index < 64 ? &seen->first : seen_word(parser, seen, table, index);
    if (word == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    uint64_t bit = UINT64_C(1) << index % 64;
    if ((*word & bit) != 0) return lifeline_json_fail(parser, LIFELINE_DUPLICATE_FIELD);
    *word |= bit;
    return true;
}

// Reads the value of a key in brackets as an extension; `*found` is false when it is not known as one.
static bool parse_extension(
    LifelineJSONParser *parser, const LifelineMessageTable *table, LifelineJSONString key, SeenFields *seen,
    bool *found) {
    const LifelineTypes *types = &parser->options->types;
    bool has_brackets = key.count > 2 && key.bytes[0] == '[' && key.bytes[key.count - 1] == ']';
    *found = false;
    if (!has_brackets || types->find_extension == NULL) return true;
    const LifelineMessageTable *extension =
        types->find_extension(types->context, table, 0, (const char *)key.bytes + 1, key.count - 2);
    if (extension == NULL) return true;
    *found = true;
    const LifelineField *field = extension->fields;
    bool added = false;
    LifelineExtension *place = lifeline_add_extension(&seen->extensions, parser->arena, extension, &added);
    LifelineStatus status = place == NULL ? LIFELINE_OUT_OF_MEMORY : LIFELINE_DUPLICATE_FIELD;
    bool parsed = added ? parse_field(parser, field, place->value) : lifeline_json_fail(parser, status);
    return parsed || lifeline_json_fail_in(parser, table, field->number);
}

// Reads any key. `*index` is that of the field whose value comes next; -1 when the member has been read, as it is none
// of a field.
__attribute__((noinline)) static bool parse_any_key(
    LifelineJSONParser *parser, const LifelineMessageTable *table, bool is_in_any, SeenFields *seen, int64_t *index) {
    LifelineJSONString key;
    const uint8_t *place = parser->input.next;
    *index = -1;
    if (!lifeline_json_parse_key(parser, &key)) return lifeline_json_fail_in(parser, table, 0);
    if (is_in_any && lifeline_json_key_is(key, "@type")) {
        if (seen->type) return lifeline_json_fail_at(parser, LIFELINE_DUPLICATE_FIELD, place);
        seen->type = true;
        return lifeline_json_skip_value(parser);
    }
    *index = lifeline_find_field_by_json_name(table, key.bytes, key.count);
    if (*index >= 0) return true;
    bool is_extension;
    if (!parse_extension(parser, table, key, seen, &is_extension)) return false;
    if (is_extension) return true;
    if (parser->options->ignore_unknown_fields) {
        return lifeline_json_skip_value(parser) || lifeline_json_fail_in(parser, table, 0);
    }
    lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_FIELD, place);
    return lifeline_json_fail_in(parser, table, 0);
}

LIFELINE_ALWAYS_INLINE bool parse_member(
    LifelineJSONParser *parser, const LifelineMessageTable *table, void *message, bool is_in_any, SeenFields *seen) {
    lifeline_json_skip_space(&parser->input);
    int64_t index = seen->guess;
    // Not where two fields may have a name, one has to be escaped, or one may be "@type".
    bool can_guess = (table->flags & LIFELINE_MESSAGE_NEEDS_NAME_SEARCH) == 0 && !is_in_any;
    bool is_guessed = can_guess && index < table->field_count
                      && (take_key(&parser->input, table, (uint32_t)index)
                          || take_some_key(&parser->input, table, &index));
    if (!is_guessed && !parse_any_key(parser, table, is_in_any, seen, &index)) return false;
    if (index < 0) return true;
    seen->guess = (uint32_t)index + 1;
    const LifelineField *field = &table->fields[index];
    bool parsed = note_field(parser, seen, table, (size_t)index) && parse_field(parser, field, message);
    return parsed || lifeline_json_fail_in(parser, table, field->number);
}

bool lifeline_json_parse_fields(
    LifelineJSONParser *parser, const LifelineMessageTable *table, void *message, bool is_in_any) {
    if (lifeline_json_peek(&parser->input) != '{') return lifeline_json_fail_at_value(parser);
    if (!lifeline_json_enter(parser)) return false;
    parser->input.next += 1;
    bool failed = false;
    if (!lifeline_json_take(&parser->input, '}')) {
        SeenFields seen = {.guess = 0};
        do {
            if (!parse_member(parser, table, message, is_in_any, &seen)) return false;
        } while (lifeline_json_continues(parser, '}', &failed));
        LifelineFailure failure;
        bool has_extensions = seen.extensions.count > 0;
        if (has_extensions && !lifeline_write_extensions(table, message, &seen.extensions, parser->arena, &failure)) {
            lifeline_json_fail(parser, failure.status);
            failed = true;
        }
    }
    parser->depth += 1;
    return !failed || lifeline_json_fail_in(parser, table, 0);
}

bool lifeline_json_parse_message(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message) {
    if (parser->messages == 0) return lifeline_json_fail(parser, LIFELINE_TOO_DEEP);
    parser->messages -= 1;
    bool parsed = table->well_known != LIFELINE_WELL_KNOWN_NONE
                      ? lifeline_json_parse_well_known(parser, table, message)
                      : lifeline_json_parse_fields(parser, table, message, false);
    parser->messages += 1;
    return parsed;
}

// As deep as messages can be decoded, encoded and printed.
enum { LARGEST_DEPTH = 1000 };

bool lifeline_json_is_utf8(const void *bytes, size_t count) { return lifeline_is_utf8(bytes, count); }

bool lifeline_json_parse(
    const LifelineMessageTable *table, void *message, const void *bytes, size_t count, size_t *offset,
    LifelineArena *arena, const LifelineJSONParseOptions *options, LifelineFailure *failure) {
    const uint8_t *start = bytes;
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    LifelineJSONParser parser = {
        .input = {.start = start, .next = start + *offset, .end = start + count},
        .arena = arena,
        .options = options,
        .failure = failure,
        .depth = options->maximum_depth + 1,
        .messages = LARGEST_DEPTH + 1,
        .search_left = 8 * (count - *offset),
    };
    if (!lifeline_json_parse_message(&parser, table, message)) return lifeline_json_fail_in(&parser, table, 0);
    *offset = (size_t)(parser.input.next - start);
    return true;
}
