// Parses texts as text format, prints their contents, and parses the result again.
#include <string.h>
#include <strings.h>

#include "fuzz_textual.h"
#include "lifeline_text_format.h"

static bool parse(FuzzMessage *message, const uint8_t *bytes, size_t count, const FuzzTextualOptions *options) {
    LifelineTextParseOptions parse_options = {
        .types = options->types,
        .maximum_depth = options->maximum_depth,
        .ignore_unknown_fields = options->ignores_unknown,
    };
    return lifeline_text_parse(
        message->table, message->fields, bytes, count, &message->arena, &parse_options, &message->failure);
}

static bool print(
    const FuzzMessage *message, const FuzzTextualOptions *options, LifelineText *text, LifelineFailure *failure) {
    LifelineTextPrintOptions print_options = {
        .write_double = fuzz_write_double,
        .write_float = fuzz_write_float,
        .types = options->types,
        .maximum_depth = options->maximum_depth,
        .in_one_line = (options->printing & 1) != 0,
        .unknown_fields = false,  // they could not be read back
    };
    return lifeline_text_print(message->table, message->fields, &print_options, text, failure);
}

// Literals may hold any bytes.
static bool is_text(const uint8_t *bytes, size_t count) {
    (void)bytes;
    (void)count;
    return true;
}

static bool begins_with(const uint8_t *bytes, size_t count, const char *word) {
    return count >= strlen(word) && memcmp(bytes, word, strlen(word)) == 0;
}

// The bytes of a google.protobuf.Any are printed as a message, in their shortest form and without unknown fields, and
// NaN without its sign.
static bool may_lose(const uint8_t *bytes, size_t count, const FuzzTextualOptions *options) {
    bool knows_types = options->types.find_message != NULL;
    bool has_url = false;
    for (size_t index = 0; index < count; index += 1) {
        const uint8_t *word = bytes + index;
        size_t left = count - index;
        has_url = has_url || *word == '/';
        // The bytes may also follow an empty message in brackets.
        bool is_bytes = begins_with(word, left, "type_url") || (has_url && begins_with(word, left, "value"));
        if (is_bytes && knows_types) return true;
        bool is_nan = left >= 3 && strncasecmp((const char *)word, "nan", 3) == 0;
        if (is_nan && (left == 3 || word[3] != 'o')) return true;  // not "nanos"
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const FuzzFormat format = {.is_text = is_text, .parse = parse, .print = print, .may_lose = may_lose};
    return fuzz_textual(&format, data, size);
}
