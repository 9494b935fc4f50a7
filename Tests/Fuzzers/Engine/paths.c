// The decoder of tail calls against the plain one: the same outcome for every input, whatever lies behind it.
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    // What would be read as the end of a varint in one is the middle of one in the other.
    uint8_t filler = input.variant;
    FuzzBytes fast_bytes = fuzz_copy_bytes(input.message, input.count, filler, input.variant & 7);
    FuzzBytes plain_bytes = fuzz_copy_bytes(input.message, input.count, (uint8_t)~filler, 0);
    FuzzMessage fast = fuzz_create_message(input.table, NULL, 0, fuzz_ample_budget);
    FuzzMessage plain = fuzz_create_message(input.table, NULL, 0, fuzz_ample_budget);

    bool decoded = fuzz_decode(lifeline_message_decode, &fast, &fast_bytes, input.depth);
    FUZZ_CHECK(fuzz_decode(lifeline_message_decode_plain, &plain, &plain_bytes, input.depth) == decoded);
    FUZZ_CHECK(fast.failure.status == plain.failure.status);
    FUZZ_CHECK(fast.failure.offset == plain.failure.offset);
    FUZZ_CHECK(fast.failure.field_number == plain.failure.field_number);
    FUZZ_CHECK(fast.failure.message == plain.failure.message);
    if (decoded) {
        FUZZ_CHECK(lifeline_message_equal(input.table, fast.fields, plain.fields));
        size_t fast_count = 0;
        size_t plain_count = 0;
        uint8_t *fast_encoded = fuzz_encode(&fast, false, input.depth, &fast_count);
        uint8_t *plain_encoded = fuzz_encode(&plain, false, input.depth, &plain_count);
        FUZZ_CHECK(fast_count == plain_count);
        FUZZ_CHECK(fast_count == 0 || memcmp(fast_encoded, plain_encoded, fast_count) == 0);
        free(fast_encoded);
        free(plain_encoded);
    }
    fuzz_free_message(&fast);
    fuzz_free_message(&plain);
    fuzz_free_bytes(&fast_bytes);
    fuzz_free_bytes(&plain_bytes);
    return 0;
}
