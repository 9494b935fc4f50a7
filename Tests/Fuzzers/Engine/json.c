// Parses texts as JSON, prints their contents, and parses the result again.
#include "fuzz_textual.h"

static bool parse(FuzzMessage *message, const uint8_t *bytes, size_t count, const FuzzTextualOptions *options) {
    LifelineJSONParseOptions parse_options = {
        .types = options->types,
        .maximum_depth = options->maximum_depth,
        .ignore_unknown_fields = options->ignores_unknown,
    };
    size_t offset = 0;
    bool parsed = lifeline_json_parse(
        message->table, message->fields, bytes, count, &offset, &message->arena, &parse_options, &message->failure);
    FUZZ_CHECK(offset <= count && (offset > 0 || !parsed));
    while (parsed && offset < count && strchr(" \t\r\n", bytes[offset]) != NULL && bytes[offset] != 0) offset += 1;
    if (!parsed || offset == count) return parsed;
    message->failure =
        (LifelineFailure){.status = LIFELINE_SYNTAX, .offset = offset, .message = message->table};
    return false;
}

static bool print(
    const FuzzMessage *message, const FuzzTextualOptions *options, LifelineText *text, LifelineFailure *failure) {
    LifelineJSONPrintOptions print_options = {
        .write_double = fuzz_write_double,
        .write_float = fuzz_write_float,
        .types = options->types,
        .maximum_depth = options->maximum_depth,
        .enums_as_numbers = (options->printing & 1) != 0,
        .int64_as_numbers = (options->printing & 2) != 0,
        .proto_names = (options->printing & 4) != 0,
        .absent_fields = (options->printing & 8) != 0,
    };
    return lifeline_json_print(message->table, message->fields, &print_options, text, failure);
}

static bool is_text(const uint8_t *bytes, size_t count) { return lifeline_json_is_utf8(bytes, count); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const FuzzFormat format = {.is_text = is_text, .parse = parse, .print = print};
    return fuzz_textual(&format, data, size);
}
