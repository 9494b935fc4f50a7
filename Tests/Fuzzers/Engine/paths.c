// Two ways give the same result: decoding with and without tail calls, whatever bytes follow the input and as long as
// there is memory; and checking text with the processor's vectors and with a table.
#include "fuzz_input.h"
#include "utf8.h"

static void check_messages(const FuzzMessage *left, const FuzzMessage *right, uint32_t depth) {
    FUZZ_CHECK(lifeline_message_equal(left->table, left->fields, right->fields));
    size_t left_count = 0;
    size_t right_count = 0;
    uint8_t *left_encoded = fuzz_encode(left, false, depth, &left_count);
    uint8_t *right_encoded = fuzz_encode(right, false, depth, &right_count);
    FUZZ_CHECK(left_count == right_count);
    FUZZ_CHECK(left_count == 0 || memcmp(left_encoded, right_encoded, left_count) == 0);
    free(left_encoded);
    free(right_encoded);
}

// A partly decoded message is also valid.
static void check_readable(const FuzzMessage *message, uint32_t depth) {
    if (message->failure.status != LIFELINE_OK) check_messages(message, message, depth);
}

static bool is_out_of_memory(const FuzzMessage *message) {
    return message->failure.status == LIFELINE_OUT_OF_MEMORY;
}

static void check_decoders(const FuzzInput *input) {
    FuzzMessage fast = fuzz_create_message(input->table, NULL, 0, input->budget);
    FuzzMessage plain = fuzz_create_message(input->table, NULL, 0, input->budget);
    FUZZ_CHECK((fast.fields == NULL) == (plain.fields == NULL));
    if (fast.fields == NULL) return;
    // Bytes that one would read as the end of a varint are the middle of one for the other.
    uint8_t filler = input->variant;
    FuzzBytes fast_bytes = fuzz_copy_bytes(input->message, input->count, filler, input->variant & 7);
    FuzzBytes plain_bytes = fuzz_copy_bytes(input->message, input->count, (uint8_t)~filler, 0);

    fuzz_decode(lifeline_message_decode, &fast, &fast_bytes, &input->options);
    fuzz_decode(lifeline_message_decode_plain, &plain, &plain_bytes, &input->options);
    // The paths take memory in different order, so one may fit into a budget that the other exhausts.
    bool exhausted = is_out_of_memory(&fast) || is_out_of_memory(&plain);
    FUZZ_CHECK(!exhausted || input->budget < fuzz_ample_budget);
    FUZZ_CHECK(exhausted || fuzz_same_failure(&fast.failure, &plain.failure));
    check_readable(&fast, input->options.maximum_depth);
    check_readable(&plain, input->options.maximum_depth);
    if (fast.failure.status == LIFELINE_OK && plain.failure.status == LIFELINE_OK) {
        check_messages(&fast, &plain, input->options.maximum_depth);
    }
    fuzz_free_message(&fast);
    fuzz_free_message(&plain);
    fuzz_free_bytes(&fast_bytes);
    fuzz_free_bytes(&plain_bytes);
}

static bool is_ascii(const uint8_t *bytes, size_t count) {
    for (size_t index = 0; index < count; index += 1) {
        if (bytes[index] >= 0x80) return false;
    }
    return true;
}

static void check_utf8(const uint8_t *text, size_t count) {
    bool by_table = lifeline_is_utf8_by_table(text, count);
    FUZZ_CHECK(lifeline_is_utf8(text, count) == by_table);
    FUZZ_CHECK(by_table || !is_ascii(text, count));
}

// The whole input, and pieces that begin and end within characters and vectors.
static void check_validators(const FuzzInput *input) {
    // Two copies, because validators of UTF-8 have no slop to read.
    uint8_t *text = malloc(input->count);
    FUZZ_CHECK(text != NULL || input->count == 0);
    if (input->count > 0) memcpy(text, input->message, input->count);
    FuzzBytes with_slop = fuzz_copy_bytes(input->message, input->count, input->variant, 0);
    check_utf8(text, input->count);
    FUZZ_CHECK(lifeline_is_ascii(with_slop.bytes, input->count) == is_ascii(text, input->count));
    for (size_t start = 0, piece = input->variant; start < input->count; start += 1) {
        size_t left = input->count - start;
        piece = (piece + 23) % 64;
        size_t count = piece < left ? piece : left;
        check_utf8(text + start, count);
        FUZZ_CHECK(lifeline_is_ascii(with_slop.bytes + start, count) == is_ascii(text + start, count));
    }
    free(text);
    fuzz_free_bytes(&with_slop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    check_decoders(&input);
    if (input.budget < fuzz_ample_budget) {
        FuzzInput ample = fuzz_with_ample_budget(&input);
        check_decoders(&ample);
    }
    check_validators(&input);
    return 0;
}
