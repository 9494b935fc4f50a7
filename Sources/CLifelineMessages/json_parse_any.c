// Parses google.protobuf.Any: an object with the type of a message under "@type" beside its fields, or its value.
#include "content.h"
#include "json_parse.h"

// Reads the type's URL, which may come after other members. They are read twice then, and those of an Any inside of
// another one up to once for each: so there is a limit.
static bool find_type(LifelineJSONParser *parser, LifelineJSONString *url) {
    LifelineJSONInput start = parser->input;
    bool found = false;
    bool failed = false;
    parser->input.next += 1;
    if (lifeline_json_take(&parser->input, '}')) return lifeline_json_fail(parser, LIFELINE_UNKNOWN_MESSAGE);
    do {
        LifelineJSONString key;
        if (!lifeline_json_parse_key(parser, &key)) return false;
        found = lifeline_json_key_is(key, "@type");
        if (found ? !lifeline_json_parse_string(parser, url) : !lifeline_json_skip_value(parser)) return false;
    } while (!found && lifeline_json_continues(parser, '}', &failed));
    if (failed) return false;
    if (!found) return lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_MESSAGE, start.next);
    size_t searched = (size_t)(parser->input.next - start.next);
    if (searched > parser->search_left) return lifeline_json_fail_at(parser, LIFELINE_TOO_DEEP, start.next);
    parser->search_left -= searched;
    parser->input = start;
    return true;
}

// The members of an Any whose message has a form of its own: "@type" and "value".
static bool parse_value_member(LifelineJSONParser *parser, const LifelineMessageTable *table, void *content) {
    bool has_value = false;
    bool has_type = false;
    bool failed = false;
    parser->input.next += 1;
    do {
        LifelineJSONString key;
        lifeline_json_skip_space(&parser->input);
        const uint8_t *place = parser->input.next;
        if (!lifeline_json_parse_key(parser, &key)) return false;
        bool is_value = lifeline_json_key_is(key, "value");
        bool is_type = lifeline_json_key_is(key, "@type");
        if ((is_value && has_value) || (is_type && has_type)) {
            return lifeline_json_fail_at(parser, LIFELINE_DUPLICATE_FIELD, place);
        }
        has_value = has_value || is_value;
        has_type = has_type || is_type;
        if (is_value) {
            if (!lifeline_json_parse_message(parser, table, content)) return lifeline_json_fail_in(parser, table, 0);
        } else if (is_type || parser->options->ignore_unknown_fields) {
            if (!lifeline_json_skip_value(parser)) return false;
        } else {
            return lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_FIELD, place);
        }
    } while (lifeline_json_continues(parser, '}', &failed));
    return !failed;
}

bool lifeline_json_parse_any(LifelineJSONParser *parser, const LifelineMessageTable *table, void *message) {
    if (lifeline_json_peek(&parser->input) != '{') return lifeline_json_fail_at_value(parser);
    const uint8_t *start = parser->input.next;
    if (!lifeline_json_enter(parser)) return false;
    // An empty one holds nothing.
    parser->input.next += 1;
    if (lifeline_json_take(&parser->input, '}')) {
        parser->depth += 1;
        return true;
    }
    parser->input.next = start;
    LifelineJSONString url;
    if (!find_type(parser, &url)) return false;
    const LifelineMessageTable *content_table = lifeline_find_by_url(&parser->options->types, url.bytes, url.count);
    if (content_table == NULL) return lifeline_json_fail_at(parser, LIFELINE_UNKNOWN_MESSAGE, start);
    void *url_value = lifeline_mutable_at(message, table->fields[0].offset);
    if (!lifeline_json_store_copy(parser, url.bytes, url.count, url_value)) return false;
    void *content = lifeline_message_create(content_table, parser->arena);
    if (content == NULL) return lifeline_json_fail(parser, LIFELINE_OUT_OF_MEMORY);
    if (content_table->well_known == LIFELINE_WELL_KNOWN_NONE) {
        // It enters the same object.
        parser->depth += 1;
        if (!lifeline_json_parse_fields(parser, content_table, content, true)) return false;
    } else {
        if (!parse_value_member(parser, content_table, content)) return false;
        parser->depth += 1;
    }
    LifelineStatus status = lifeline_store_encoded(
        parser->arena, content_table, content, lifeline_mutable_at(message, table->fields[1].offset));
    return status == LIFELINE_OK || lifeline_json_fail(parser, status);
}
