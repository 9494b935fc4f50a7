#include "fuzz_textual.h"

// Above the depth of all messages that a text of a depth of 1,000 stands for.
static const uint32_t ample_depth = 10000;

size_t fuzz_write_double(double value, uint8_t *text) {
    char digits[32];
    int count = 0;
    for (int precision = 15; precision <= 17; precision += 1) {
        count = snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    memcpy(text, digits, (size_t)count);
    return (size_t)count;
}

size_t fuzz_write_float(float value, uint8_t *text) {
    char digits[32];
    int count = snprintf(digits, sizeof digits, "%.9g", (double)value);
    memcpy(text, digits, (size_t)count);
    return (size_t)count;
}

// Parses from memory of exactly the text's size, and checks the rules for every outcome, including the message, which
// is valid even after a failure.
static bool parse(
    const FuzzFormat *format, FuzzMessage *message, const uint8_t *text, size_t count, size_t budget,
    const FuzzTextualOptions *options) {
    uint8_t *bytes = malloc(count);
    FUZZ_CHECK(bytes != NULL || count == 0);
    if (count > 0) memcpy(bytes, text, count);
    bool parsed = format->parse(message, bytes, count, options);
    free(bytes);
    const LifelineFailure *failure = &message->failure;
    FUZZ_CHECK(parsed == (failure->status == LIFELINE_OK));
    FUZZ_CHECK(parsed || (failure->message != NULL && failure->offset <= count));
    fuzz_check_budget(message, budget);

    size_t encoded_count = 0;
    uint8_t *encoded = fuzz_encode(message, false, ample_depth, &encoded_count);
    FuzzBytes copy = fuzz_copy_bytes(encoded, encoded_count, 0x80, 0);
    FuzzMessage decoded = fuzz_create_message(message->table, NULL, 0, fuzz_ample_budget);
    LifelineDecodeOptions decode_options = {
        .maximum_depth = ample_depth, .accept_malformed_text = message->arena.may_hold_malformed_text};
    FUZZ_CHECK(fuzz_decode(lifeline_message_decode, &decoded, &copy, &decode_options));
    FUZZ_CHECK(lifeline_message_equal(message->table, message->fields, decoded.fields));
    fuzz_free_message(&decoded);
    fuzz_free_bytes(&copy);
    free(encoded);
    return parsed;
}

// False if extensions are nested deeper than can be printed.
static bool print(
    const FuzzFormat *format, const FuzzMessage *message, const FuzzTextualOptions *options, LifelineText *text) {
    LifelineFailure failure;
    lifeline_text_init(text, NULL, 0);
    if (format->print(message, options, text, &failure)) return true;
    FUZZ_CHECK(failure.status == LIFELINE_TOO_DEEP && options->types.find_extension != NULL);
    lifeline_text_destroy(text);
    return false;
}

// A parsed message is printed as a text that is parsed to the same message, and printed the same.
static void check_printing(
    const FuzzFormat *format, const FuzzMessage *message, const FuzzInput *input, FuzzTextualOptions options) {
    bool may_be_too_deep = options.maximum_depth > 100;
    options.maximum_depth = ample_depth;
    LifelineText text;
    if (!print(format, message, &options, &text)) {
        FUZZ_CHECK(may_be_too_deep);
        return;
    }
    FuzzMessage again = fuzz_create_message(message->table, NULL, 0, fuzz_ample_budget);
    FUZZ_CHECK(text.count == 0 || format->is_text(text.memory, text.count));
    FUZZ_CHECK(parse(format, &again, text.memory, text.count, fuzz_ample_budget, &options));
    bool may_lose = format->may_lose != NULL && format->may_lose(input->message, input->count, &options);
    FUZZ_CHECK(may_lose || lifeline_message_equal(message->table, message->fields, again.fields));
    LifelineText text_again;
    FUZZ_CHECK(print(format, &again, &options, &text_again));
    FUZZ_CHECK(text_again.count == text.count);
    FUZZ_CHECK(text.count == 0 || memcmp(text_again.memory, text.memory, text.count) == 0);
    lifeline_text_destroy(&text_again);
    lifeline_text_destroy(&text);
    fuzz_free_message(&again);
}

// Any start of the text is parsed or refused.
static void check_truncations(
    const FuzzFormat *format, const FuzzInput *input, const FuzzTextualOptions *options) {
    // Only some of a long text, because all would take too long.
    size_t step = 1 + input->count / 128;
    for (size_t count = input->variant % step; count < input->count; count += step) {
        FuzzMessage message = fuzz_create_message(input->table, NULL, 0, fuzz_ample_budget);
        parse(format, &message, input->message, count, fuzz_ample_budget, options);
        fuzz_free_message(&message);
    }
}

// With little memory, the outcome is the same, or a lack of memory.
static void check_budget(
    const FuzzFormat *format, const FuzzInput *input, const FuzzMessage *ample, const FuzzTextualOptions *options) {
    FuzzMessage message = fuzz_create_message(input->table, NULL, 0, input->budget);
    if (message.fields == NULL) return fuzz_free_message(&message);
    if (parse(format, &message, input->message, input->count, input->budget, options)) {
        FUZZ_CHECK(ample->failure.status == LIFELINE_OK);
        FUZZ_CHECK(lifeline_message_equal(input->table, message.fields, ample->fields));
    } else {
        FUZZ_CHECK(
            message.failure.status == LIFELINE_OUT_OF_MEMORY
            || fuzz_same_failure(&message.failure, &ample->failure));
    }
    fuzz_free_message(&message);
}

int fuzz_textual(const FuzzFormat *format, const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    FuzzTextualOptions options = {
        .maximum_depth = input.options.maximum_depth,
        .ignores_unknown = (input.variant & 0x01) != 0,
        .types = {.find_message = fuzz_find_message, .find_extension = fuzz_find_extension},
        .printing = input.variant >> 4,
    };
    if ((input.variant & 0x02) != 0) options.types = (LifelineTypes){.find_message = NULL};
    FuzzMessage message = fuzz_create_message(input.table, NULL, 0, fuzz_ample_budget);
    bool parsed = parse(format, &message, input.message, input.count, fuzz_ample_budget, &options);
    FUZZ_CHECK(message.failure.status != LIFELINE_OUT_OF_MEMORY);
    FUZZ_CHECK(!parsed || format->is_text(input.message, input.count));
    if (parsed) {
        check_printing(format, &message, &input, options);
        check_truncations(format, &input, &options);
    }
    check_budget(format, &input, &message, &options);
    fuzz_free_message(&message);
    return 0;
}
