// Decodes an input, and walks through all that came out of it: after a failure too, for what was decoded until then is
// promised to be a message. Checks what lifeline_message.h and lifeline_arena.h promise about memory.
#include "fuzz_input.h"

// A copy for which memory is short by a word is refused.
static void check_copy_without_room(const FuzzMessage *message, void *memory, size_t size) {
    LifelineArena arena;
    fuzz_start_arena(&arena, memory, size - 8, 0);
    FUZZ_CHECK(lifeline_message_copy(message->table, message->fields, &arena) == NULL);
    lifeline_arena_destroy(&arena);
}

// A message that is encoded with a lower limit of depth than it needs is refused, and else encoded as ever.
static void check_encoding_depth(
    const FuzzMessage *message, uint32_t depth, const uint8_t *expected, size_t expected_count) {
    uint8_t *encoded = NULL;
    size_t count = 0;
    if (!fuzz_try_encode(message, false, depth / 2, &encoded, &count)) return;
    FUZZ_CHECK(count == expected_count && (count == 0 || memcmp(encoded, expected, count) == 0));
    free(encoded);
}

// A deep copy takes what copy_size says to the byte, refers to nothing of the original, and equals it.
static void check_copy(FuzzMessage *message, FuzzBytes *bytes, uint32_t depth) {
    const LifelineMessageTable *table = message->table;
    size_t size = lifeline_message_copy_size(table, message->fields);
    uint8_t *memory = malloc(size);
    FUZZ_CHECK(memory != NULL);
    check_copy_without_room(message, memory, size);
    FuzzMessage copy = {.table = table};
    fuzz_start_arena(&copy.arena, memory, size, 0);
    copy.fields = lifeline_message_copy(table, message->fields, &copy.arena);
    FUZZ_CHECK(copy.fields != NULL);
    FUZZ_CHECK(copy.arena.next == memory + size);

    FUZZ_CHECK(lifeline_message_equal(table, message->fields, copy.fields));
    FUZZ_CHECK(lifeline_message_equal(table, copy.fields, message->fields));
    FUZZ_CHECK(lifeline_message_copy_size(table, copy.fields) == size);

    LifelineFailure missing = {.status = LIFELINE_OK};
    LifelineFailure missing_in_copy = {.status = LIFELINE_OK};
    bool is_missing = lifeline_message_missing_required(table, message->fields, &missing);
    FUZZ_CHECK(lifeline_message_missing_required(table, copy.fields, &missing_in_copy) == is_missing);
    FUZZ_CHECK(missing.status == (is_missing ? LIFELINE_MISSING_REQUIRED : LIFELINE_OK));
    FUZZ_CHECK(missing.message == missing_in_copy.message && missing.field_number == missing_in_copy.field_number);

    size_t encoded_count = 0;
    uint8_t *encoded = fuzz_encode(message, false, depth, &encoded_count);
    check_encoding_depth(message, depth, encoded, encoded_count);
    fuzz_free_message(message);
    fuzz_free_bytes(bytes);
    size_t copy_count = 0;
    uint8_t *copy_encoded = fuzz_encode(&copy, false, depth, &copy_count);
    FUZZ_CHECK(copy_count == encoded_count && (copy_count == 0 || memcmp(copy_encoded, encoded, copy_count) == 0));
    free(encoded);
    free(copy_encoded);
    fuzz_free_message(&copy);
    free(memory);
}

// Memory of the size that lifeline_message.h states is enough, and changes nothing.
static void check_bound(const FuzzInput *input, const LifelineFailure *expected) {
    size_t largest = fuzz_largest_struct(input->table);
    size_t per_byte = largest / 2 + 20 > 50 ? largest / 2 + 20 : 50;
    size_t size = ((input->table->size + 7) & ~(size_t)7) + ((input->count * per_byte + 7) & ~(size_t)7);
    uint8_t *memory = malloc(size);
    FUZZ_CHECK(memory != NULL);
    FuzzBytes bytes = fuzz_copy_bytes(input->message, input->count, 0xff, 0);
    FuzzMessage message = fuzz_create_message(input->table, memory, size, 0);
    FUZZ_CHECK(message.fields != NULL);
    fuzz_decode(lifeline_message_decode, &message, &bytes, input->depth);
    FUZZ_CHECK(message.failure.status == expected->status);
    FUZZ_CHECK(message.failure.offset == expected->offset);
    fuzz_free_message(&message);
    fuzz_free_bytes(&bytes);
    free(memory);
}

static void check_with_budget(const FuzzInput *input, size_t budget, LifelineFailure *failure) {
    FuzzMessage message = fuzz_create_message(input->table, NULL, 0, budget);
    if (message.fields == NULL) {
        FUZZ_CHECK(budget < fuzz_ample_budget);
        FUZZ_CHECK(lifeline_arena_block_bytes(&message.arena) == 0);
        return;
    }
    FuzzBytes bytes = fuzz_copy_bytes(input->message, input->count, input->variant, input->variant & 7);
    fuzz_decode(lifeline_message_decode, &message, &bytes, input->depth);
    *failure = message.failure;
    size_t left = (size_t)message.arena.budget * LIFELINE_ARENA_UNIT;
    FUZZ_CHECK(left <= budget && lifeline_arena_block_bytes(&message.arena) <= budget - left);
    check_copy(&message, &bytes, input->depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    LifelineFailure failure = {.status = LIFELINE_OK};
    check_with_budget(&input, fuzz_ample_budget, &failure);
    FUZZ_CHECK(failure.status != LIFELINE_OUT_OF_MEMORY);
    check_bound(&input, &failure);
    if (input.budget < fuzz_ample_budget) check_with_budget(&input, input.budget, &failure);
    return 0;
}
