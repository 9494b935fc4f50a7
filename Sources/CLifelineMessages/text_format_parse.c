// Parses messages from text format. text_format_scan.c reads the tokens.
#include "array.h"
#include "content.h"
#include "fields.h"
#include "lifeline_text_format.h"
#include "map_order.h"
#include "lifeline_names.h"
#include "numbers.h"
#include "text_format_scan.h"
#include "utf8.h"

// One call of lifeline_text_parse.
typedef struct TextParser {
    LifelineTextInput input;
    const uint8_t *bytes;  // the start of the whole input
    LifelineArena *arena;
    const LifelineTextParseOptions *options;
    LifelineFailure *failure;
    uint32_t depth;  // how many messages may still be nested
} TextParser;

// MARK: Failures

static bool fail_at(TextParser *parser, LifelineStatus status, const uint8_t *place) {
    parser->failure->status = status;
    parser->failure->offset = (size_t)(place - parser->bytes);
    return false;
}

static bool fail(TextParser *parser, LifelineStatus status) { return fail_at(parser, status, parser->input.next); }

// Names the message and the field, or 0, of a failure, unless a message below has named its own.
static bool fail_in(TextParser *parser, const LifelineMessageTable *table, uint32_t field_number) {
    if (parser->failure->message != NULL) return false;
    parser->failure->message = table;
    parser->failure->field_number = field_number;
    return false;
}

// A value of another kind than what is expected, or no value at all.
static bool fail_at_value(TextParser *parser) {
    uint8_t first = lifeline_text_peek(&parser->input);
    bool begins_value = first == '"' || first == '\'' || first == '-' || first == '{' || first == '<' || first == '['
                        || first == '.' || lifeline_text_is_word(first);
    return fail(parser, begins_value ? LIFELINE_WRONG_KIND : LIFELINE_SYNTAX);
}

// MARK: Text and bytes

// Reads one or more literals, which are one string.
static bool parse_bytes(TextParser *parser, const LifelineField *field, void *value) {
    uint8_t first = lifeline_text_peek(&parser->input);
    if (first != '"' && first != '\'') return fail_at_value(parser);
    const uint8_t *start = parser->input.next;
    // No literal is shorter than its value: the room is that of all of them.
    LifelineTextInput end = parser->input;
    size_t room = 0;
    do {
        size_t length;
        if (!lifeline_text_skip_literal(&end, &length)) return fail_at(parser, LIFELINE_SYNTAX, end.next);
        room += length;
        first = lifeline_text_peek(&end);
    } while (first == '"' || first == '\'');
    uint8_t *memory = NULL;
    size_t count = 0;
    if (room > 0) {
        memory = lifeline_arena_allocate(parser->arena, room);
        if (memory == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY);
        while (parser->input.next != end.next) {
            if (!lifeline_text_read_literal(&parser->input, memory, &count)) return fail(parser, LIFELINE_SYNTAX);
            lifeline_text_skip_space(&parser->input);
        }
        lifeline_arena_resize_last(parser->arena, memory, room, count);
    }
    parser->input = end;
    bool validate = (field->flags & LIFELINE_FIELD_VALIDATE_UTF8) != 0;
    if (validate && count > 0 && !lifeline_is_utf8(memory, count)) return fail_at(parser, LIFELINE_INVALID_UTF8, start);
    lifeline_store_bytes(value, count > 0 ? memory : NULL, count);
    return true;
}

// MARK: Numbers

static bool parse_integer(TextParser *parser, const LifelineField *field, void *value) {
    LifelineTextInput start = parser->input;
    LifelineTextToken token;
    bool is_negative = lifeline_text_take(&parser->input, '-');
    uint64_t absolute;
    // Also one with a point, which is no integer.
    if (!lifeline_text_read_number(&parser->input, &token)) return fail_at_value(parser);
    const uint8_t *place = token.bytes;
    switch (lifeline_text_integer(token, &absolute)) {
        case LIFELINE_TEXT_NO_INTEGER: return fail_at(parser, LIFELINE_WRONG_KIND, start.next);
        case LIFELINE_TEXT_TOO_LARGE: return fail_at(parser, LIFELINE_OUT_OF_RANGE, place);
        case LIFELINE_TEXT_INTEGER: break;
    }
    size_t size = lifeline_value_size(field);
    uint64_t most;
    switch (field->type) {
        case LIFELINE_TYPE_UINT32:
        case LIFELINE_TYPE_FIXED32: most = is_negative ? 0 : UINT32_MAX; break;
        case LIFELINE_TYPE_UINT64:
        case LIFELINE_TYPE_FIXED64: most = is_negative ? 0 : UINT64_MAX; break;
        default: most = (UINT64_C(1) << (8 * size - 1)) - (is_negative ? 0 : 1);
    }
    if (absolute > most) return fail_at(parser, LIFELINE_OUT_OF_RANGE, place);
    lifeline_store_scalar(value, size, is_negative ? 0 - absolute : absolute);
    return true;
}

static bool parse_floating_point(TextParser *parser, const LifelineField *field, void *value) {
    bool is_negative = lifeline_text_take(&parser->input, '-');
    LifelineTextToken token;
    if (!lifeline_text_read_number(&parser->input, &token)) return fail_at_value(parser);
    double number;
    float small;
    if (lifeline_text_is_infinity(token)) {
        number = __builtin_inf();
        small = __builtin_inff();
    } else if (lifeline_text_is_nan(token)) {
        number = __builtin_nan("");
        small = __builtin_nanf("");
    } else {
        if (!lifeline_text_is_decimal(&token)) return fail_at(parser, LIFELINE_WRONG_KIND, token.bytes);
        bool is_read = field->type == LIFELINE_TYPE_FLOAT ? lifeline_read_float(token.bytes, token.count, &small)
                                                          : lifeline_read_double(token.bytes, token.count, &number);
        if (!is_read) return fail_at(parser, LIFELINE_OUT_OF_MEMORY, token.bytes);
    }
    // Numbers that are too large are infinite, as in other implementations.
    if (field->type == LIFELINE_TYPE_FLOAT) {
        if (is_negative) small = -small;
        memcpy(value, &small, sizeof small);
    } else {
        if (is_negative) number = -number;
        memcpy(value, &number, sizeof number);
    }
    return true;
}

static bool parse_bool(TextParser *parser, void *value) {
    LifelineTextToken token;
    uint64_t number = 2;
    if (!lifeline_text_read_word(&parser->input, &token)) return fail_at_value(parser);
    if (lifeline_text_is(token, "true") || lifeline_text_is(token, "True") || lifeline_text_is(token, "t")) {
        number = 1;
    } else if (lifeline_text_is(token, "false") || lifeline_text_is(token, "False") || lifeline_text_is(token, "f")) {
        number = 0;
    } else if (lifeline_text_integer(token, &number) != LIFELINE_TEXT_INTEGER || number > 1) {
        return fail_at(parser, LIFELINE_WRONG_KIND, token.bytes);
    }
    lifeline_store_scalar(value, lifeline_type_size(LIFELINE_TYPE_BOOL), number);
    return true;
}

static bool parse_enum(TextParser *parser, const LifelineField *field, void *value) {
    uint8_t first = lifeline_text_peek(&parser->input);
    const uint8_t *place = parser->input.next;
    int32_t number = 0;
    if (first == '-' || (first >= '0' && first <= '9')) {
        if (!parse_integer(parser, field, &number)) return false;
        if (lifeline_is_closed_enum(field) && !lifeline_enum_knows(field, number)) {
            return fail_at(parser, LIFELINE_UNKNOWN_ENUM_VALUE, place);
        }
    } else {
        LifelineTextToken token;
        if (!lifeline_text_read_word(&parser->input, &token)) return fail_at_value(parser);
        bool is_known = field->enumeration != NULL
                        && lifeline_find_enum_value(field->enumeration, token.bytes, token.count, &number);
        if (!is_known) return fail_at(parser, LIFELINE_UNKNOWN_ENUM_VALUE, place);
    }
    lifeline_store_scalar(value, sizeof number, (uint32_t)number);
    return true;
}

// MARK: Values

static bool parse_fields(TextParser *parser, const LifelineMessageTable *table, void *message, char end);

// Reads a message in braces or angle brackets.
static bool parse_body(TextParser *parser, const LifelineMessageTable *table, void *message) {
    char end = lifeline_text_peek(&parser->input) == '<' ? '>' : '}';
    if (!lifeline_text_take(&parser->input, end == '>' ? '<' : '{')) return fail_at_value(parser);
    if (parser->depth == 0) return fail(parser, LIFELINE_TOO_DEEP);
    parser->depth -= 1;
    if (!parse_fields(parser, table, message, end)) return false;
    parser->depth += 1;
    return true;
}

static bool parse_value(TextParser *parser, const LifelineField *field, void *value) {
    switch (field->type) {
        case LIFELINE_TYPE_MESSAGE: {
            void *child = lifeline_message_create(field->message, parser->arena);
            if (child == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY);
            if (!parse_body(parser, field->message, child)) return false;
            lifeline_store_pointer(value, child);
            return true;
        }
        case LIFELINE_TYPE_STRING:
        case LIFELINE_TYPE_BYTES: return parse_bytes(parser, field, value);
        case LIFELINE_TYPE_DOUBLE:
        case LIFELINE_TYPE_FLOAT: return parse_floating_point(parser, field, value);
        case LIFELINE_TYPE_BOOL: return parse_bool(parser, value);
        case LIFELINE_TYPE_ENUM: return parse_enum(parser, field, value);
        default: return parse_integer(parser, field, value);
    }
}

// Reads an element of a repeated field, or an entry of a map.
static bool parse_element(TextParser *parser, const LifelineField *field, void *message) {
    uint64_t value[2] = {0, 0};
    if (!parse_value(parser, field, value)) return false;
    size_t count = lifeline_count(field, message);
    uint8_t *place = lifeline_append(parser->arena, message, field, 1);
    if (place == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY);
    size_t size = lifeline_value_size(field);
    memcpy(place, value, size);
    lifeline_set_count(field, message, count + 1);
    if (field->presence == LIFELINE_PRESENCE_MAP && count > 0) {
        const void *entry = lifeline_load_pointer(place);
        LifelineArrayHeader *header = lifeline_array_header(place - count * size);
        if (!lifeline_entries_ascend(field, place - size, entry)) header->unsorted = 1;
    }
    return true;
}

// Reads one element, or a list of them in square brackets.
static bool parse_elements(TextParser *parser, const LifelineField *field, void *message) {
    if (!lifeline_text_take(&parser->input, '[')) return parse_element(parser, field, message);
    if (lifeline_text_take(&parser->input, ']')) return true;
    do {
        if (!parse_element(parser, field, message)) return false;
    } while (lifeline_text_take(&parser->input, ','));
    return lifeline_text_take(&parser->input, ']') || fail(parser, LIFELINE_SYNTAX);
}

// Sorts the maps of a message whose entries did not come in order.
static bool sort_maps(TextParser *parser, const LifelineMessageTable *table, void *message) {
    bool sorted = true;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (field->presence != LIFELINE_PRESENCE_MAP || lifeline_count(field, message) == 0) continue;
        void *entries = lifeline_load_pointer(lifeline_at(message, field->offset));
        if (lifeline_array_header(entries)->unsorted == 0) continue;
        sorted = lifeline_sort_entries(parser->arena, field, message) && sorted;
    }
    return sorted;
}

// MARK: Fields

// Whether the field, which is not repeated, or another member of its oneof has been read.
static bool is_set(const LifelineField *field, const void *message) {
    if (field->presence == LIFELINE_PRESENCE_ONEOF) {
        return lifeline_load32(lifeline_at(message, field->quantifier_offset)) != 0;
    }
    return lifeline_is_present(field, message);
}

// The parts of a message that were read and are not in its struct.
typedef struct Seen {
    uint32_t of_entry;  // of a map's entry the fields, a bit each
    LifelineExtensions extensions;
} Seen;

static bool parse_field(TextParser *parser, const LifelineField *field, void *message, Seen *seen) {
    bool has_colon = lifeline_text_take(&parser->input, ':');
    bool is_repeated = lifeline_is_repeated(field);
    bool may_lack_colon = field->type == LIFELINE_TYPE_MESSAGE;
    if (!has_colon && !may_lack_colon) return fail(parser, LIFELINE_SYNTAX);
    if (is_repeated) return parse_elements(parser, field, message);
    bool is_of_entry = field->presence == LIFELINE_PRESENCE_ALWAYS;
    if (is_of_entry ? (seen->of_entry & field->number) != 0 : is_set(field, message)) {
        return fail(parser, LIFELINE_DUPLICATE_FIELD);
    }
    if (is_of_entry) seen->of_entry |= field->number;
    if (!parse_value(parser, field, lifeline_mutable_at(message, field->offset))) return false;
    lifeline_mark_present(field, message);
    return true;
}

// Reads a message under its type's URL, of which the opening bracket was read, into a google.protobuf.Any.
static bool parse_content(TextParser *parser, const LifelineMessageTable *table, void *message) {
    LifelineTextToken url;
    const uint8_t *place = parser->input.next;
    if (!lifeline_text_read_url(&parser->input, &url)) return fail(parser, LIFELINE_SYNTAX);
    uint8_t *memory = lifeline_arena_allocate(parser->arena, url.count);
    if (memory == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY);
    size_t count = lifeline_text_copy_url(url, memory);
    const LifelineMessageTable *content_table =
        lifeline_find_by_url(&parser->options->types, memory, count);
    if (content_table == NULL) return fail_at(parser, LIFELINE_UNKNOWN_MESSAGE, place);
    if (is_set(&table->fields[0], message) || is_set(&table->fields[1], message)) {
        return fail_at(parser, LIFELINE_DUPLICATE_FIELD, place);
    }
    lifeline_text_take(&parser->input, ':');
    void *content = lifeline_message_create(content_table, parser->arena);
    if (content == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY);
    lifeline_store_bytes(lifeline_mutable_at(message, table->fields[0].offset), memory, count);
    if (!parse_body(parser, content_table, content)) return false;
    void *value = lifeline_mutable_at(message, table->fields[1].offset);
    LifelineStatus status = lifeline_store_encoded(parser->arena, content_table, content, value);
    return status == LIFELINE_OK || fail_at(parser, status, place);
}

// Skips the value of a field that is unknown.
static bool skip_unknown(TextParser *parser) {
    LifelineStatus status = lifeline_text_skip_value(&parser->input, parser->depth);
    return status == LIFELINE_OK || fail(parser, status);
}

// The index of a field by its name as in the .proto file, or by its type's where it is named by that. -1 when there is
// none.
static int64_t find_field(const LifelineMessageTable *table, LifelineTextToken name) {
    int64_t found = lifeline_find_field_by_name(table, name.bytes, name.count);
    return found >= 0 ? found : lifeline_find_field_by_type(table, name.bytes, name.count);
}

// Reads the value of an extension, of which the name in brackets was read; `*found` is false when it is not known.
static bool parse_extension(
    TextParser *parser, const LifelineMessageTable *table, LifelineTextToken name, Seen *seen, bool *found) {
    const LifelineTypes *types = &parser->options->types;
    const LifelineMessageTable *extension = NULL;
    if (types->find_extension != NULL) {
        uint8_t *memory = lifeline_arena_allocate(parser->arena, name.count);
        if (memory == NULL) return fail(parser, LIFELINE_OUT_OF_MEMORY) || fail_in(parser, table, 0);
        size_t count = lifeline_text_copy_url(name, memory);
        extension = types->find_extension(types->context, table, 0, (const char *)memory, count);
    }
    *found = extension != NULL;
    if (extension == NULL) return true;
    bool added;
    LifelineExtension *place = lifeline_add_extension(&seen->extensions, parser->arena, extension, &added);
    bool parsed = false;
    if (place == NULL) {
        fail(parser, LIFELINE_OUT_OF_MEMORY);
    } else if (place->table != extension) {
        fail(parser, LIFELINE_DUPLICATE_FIELD);  // two extensions have one number
    } else {
        parsed = parse_field(parser, extension->fields, place->value, seen);
    }
    return parsed || fail_in(parser, table, extension->fields->number);
}

static bool parse_named(TextParser *parser, const LifelineMessageTable *table, void *message, Seen *seen) {
    LifelineTextToken name;
    lifeline_text_skip_space(&parser->input);
    const uint8_t *place = parser->input.next;
    if (lifeline_text_take(&parser->input, '[')) {
        if (table->well_known == LIFELINE_WELL_KNOWN_ANY) {
            return parse_content(parser, table, message) || fail_in(parser, table, 0);
        }
        if (!lifeline_text_read_url(&parser->input, &name)) {
            return fail(parser, LIFELINE_SYNTAX) || fail_in(parser, table, 0);
        }
        bool is_extension = false;
        if (!parse_extension(parser, table, name, seen, &is_extension)) return false;
        if (is_extension) return true;
        if (parser->options->ignore_unknown_fields) return skip_unknown(parser) || fail_in(parser, table, 0);
        return fail_at(parser, LIFELINE_UNKNOWN_FIELD, place) || fail_in(parser, table, 0);
    }
    if (!lifeline_text_read_name(&parser->input, &name)) {
        return fail(parser, LIFELINE_SYNTAX) || fail_in(parser, table, 0);
    }
    int64_t index = find_field(table, name);
    if (index < 0) {
        if (parser->options->ignore_unknown_fields) return skip_unknown(parser) || fail_in(parser, table, 0);
        return fail_at(parser, LIFELINE_UNKNOWN_FIELD, place) || fail_in(parser, table, 0);
    }
    const LifelineField *field = &table->fields[index];
    return parse_field(parser, field, message, seen) || fail_in(parser, table, field->number);
}

// Reads fields up to the bracket that ends them, or to the end of the input where `end` is 0.
static bool parse_fields(TextParser *parser, const LifelineMessageTable *table, void *message, char end) {
    Seen seen = {.of_entry = 0};
    bool parsed = true;
    while (parsed) {
        uint8_t next = lifeline_text_peek(&parser->input);
        bool is_at_end = parser->input.next == parser->input.end;
        if (end != 0 ? next == (uint8_t)end && !is_at_end : is_at_end) break;
        parsed = is_at_end ? fail(parser, LIFELINE_SYNTAX) || fail_in(parser, table, 0)
                           : parse_named(parser, table, message, &seen);
        // A comma or a semicolon may end a field.
        if (parsed && !lifeline_text_take(&parser->input, ',')) lifeline_text_take(&parser->input, ';');
    }
    if (parsed && end != 0) lifeline_text_take(&parser->input, end);
    LifelineFailure failure;
    if (parsed && !lifeline_write_extensions(table, message, &seen.extensions, parser->arena, &failure)) {
        parsed = fail(parser, failure.status) || fail_in(parser, table, 0);
    }
    // Also after a failure: readers rely on the order.
    bool sorted = sort_maps(parser, table, message);
    if (parsed && !sorted) return fail(parser, LIFELINE_OUT_OF_MEMORY) || fail_in(parser, table, 0);
    return parsed;
}

bool lifeline_text_parse(
    const LifelineMessageTable *table, void *message, const void *bytes, size_t count, LifelineArena *arena,
    const LifelineTextParseOptions *options, LifelineFailure *failure) {
    const uint8_t *start = bytes;
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    // Escapes may mean any bytes.
    if ((table->flags & LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT) != 0) arena->may_hold_malformed_text = true;
    TextParser parser = {
        .input = {.next = start, .end = start + count},
        .bytes = start,
        .arena = arena,
        .options = options,
        .failure = failure,
        .depth = options->maximum_depth,
    };
    return parse_fields(&parser, table, message, 0);
}
