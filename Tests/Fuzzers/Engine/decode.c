// Decodes an input, and walks through the result, even after a failure, because a partly decoded message is promised to
// be valid. Checks the promises of lifeline_message.h and lifeline_arena.h about memory, and that
// lifeline_message_parse gives the same result. Also checks extensions, and writes one of them.
#include "fuzz_input.h"

// A copy for which memory is short by a word is refused.
static void check_copy_without_room(const FuzzMessage *message, void *memory, size_t size) {
    LifelineArena arena;
    fuzz_start_arena(&arena, memory, size - 8, 0);
    FUZZ_CHECK(lifeline_message_copy(message->table, message->fields, &arena) == NULL);
    lifeline_arena_destroy(&arena);
}

// A message is refused if the depth limit of encoding is lower than it needs, and otherwise encoded as usual.
static void check_encoding_depth(
    const FuzzMessage *message, uint32_t depth, const uint8_t *expected, size_t expected_count) {
    uint8_t *encoded = NULL;
    size_t count = 0;
    if (!fuzz_try_encode(message, false, depth / 2, &encoded, &count)) return;
    FUZZ_CHECK(count == expected_count && (count == 0 || memcmp(encoded, expected, count) == 0));
    free(encoded);
}

// A deep copy takes exactly copy_size bytes, refers to nothing of the original, and equals it.
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
    size_t depth = input->options.maximum_depth;
    size_t open_groups = expected->status == LIFELINE_OK ? 0 : depth < input->count ? depth : input->count;
    size_t count = input->count + open_groups;
    size_t size = ((input->table->size + 7) & ~(size_t)7) + ((count * per_byte + 7) & ~(size_t)7);
    uint8_t *memory = malloc(size);
    FUZZ_CHECK(memory != NULL);
    FuzzBytes bytes = fuzz_copy_bytes(input->message, input->count, 0xff, 0);
    FuzzMessage message = fuzz_create_message(input->table, memory, size, 0);
    FUZZ_CHECK(message.fields != NULL);
    fuzz_decode(lifeline_message_decode, &message, &bytes, &input->options);
    FUZZ_CHECK(fuzz_same_failure(&message.failure, expected));
    fuzz_free_message(&message);
    fuzz_free_bytes(&bytes);
    free(memory);
}

// The outcome equals that of an ample budget, `ample`, or is a lack of memory.
static void check_failure(const LifelineFailure *failure, const LifelineFailure *ample) {
    FUZZ_CHECK(failure->status == LIFELINE_OUT_OF_MEMORY || fuzz_same_failure(failure, ample));
}

// MARK: Extensions

static LifelineFailure extension_failure(const FuzzMessage *message, const FuzzInput *input, bool partial) {
    LifelineTypes types = {.find_extension = fuzz_find_extension};
    LifelineFailure failure;
    bool is_valid = lifeline_extensions_check(
        message->table, message->fields, &types, partial, &input->options, &failure);
    FUZZ_CHECK(is_valid == (failure.status == LIFELINE_OK));
    FUZZ_CHECK(is_valid || failure.message != NULL);
    return failure;
}

static void check_extensions(const FuzzMessage *message, const FuzzInput *input) {
    FuzzInput ample = fuzz_with_ample_budget(input);
    LifelineFailure partial = extension_failure(message, &ample, true);
    LifelineFailure complete = extension_failure(message, &ample, false);
    FUZZ_CHECK(partial.status != LIFELINE_OUT_OF_MEMORY && partial.status != LIFELINE_MISSING_REQUIRED);
    FUZZ_CHECK(fuzz_same_failure(&partial, &complete) || complete.status == LIFELINE_MISSING_REQUIRED);
    LifelineFailure with_less = extension_failure(message, input, true);
    check_failure(&with_less, &partial);
}

static void *read_extension(const LifelineMessageTable *extension, const void *message, LifelineArena *arena) {
    fuzz_start_arena(arena, NULL, 0, fuzz_ample_budget);
    return lifeline_extension_read(extension, message, arena);
}

// Both messages have the same extension, or neither has it.
static void check_same_extension(const LifelineMessageTable *extension, const void *left, const void *right) {
    LifelineArena left_arena;
    LifelineArena right_arena;
    void *left_value = read_extension(extension, left, &left_arena);
    void *right_value = read_extension(extension, right, &right_arena);
    FUZZ_CHECK((left_value == NULL) == (right_value == NULL));
    FUZZ_CHECK(left_value == NULL || lifeline_message_equal(extension, left_value, right_value));
    lifeline_arena_destroy(&left_arena);
    lifeline_arena_destroy(&right_arena);
}

static void check_same_extensions(
    const FuzzMessage *left, const FuzzMessage *right, const LifelineMessageTable *except) {
    for (size_t index = 0; index < fuzz_extension_count; index += 1) {
        const LifelineMessageTable *extension = fuzz_extensions[index];
        bool is_compared = extension->extended == left->table && extension != except;
        if (is_compared) check_same_extension(extension, left->fields, right->fields);
    }
}

// A removed extension is gone, and the others are unchanged. Written again, it is equal to before.
static void check_writing_extension(const FuzzMessage *message, const LifelineMessageTable *extension) {
    LifelineArena arena;
    void *value = read_extension(extension, message->fields, &arena);
    FuzzMessage copy = {.table = message->table};
    fuzz_start_arena(&copy.arena, NULL, 0, fuzz_ample_budget);
    copy.fields = lifeline_message_copy(message->table, message->fields, &copy.arena);
    void *empty = lifeline_message_create(extension, &copy.arena);
    FUZZ_CHECK(copy.fields != NULL && empty != NULL);
    FUZZ_CHECK(lifeline_extension_write(extension, copy.fields, empty, &copy.arena));
    FUZZ_CHECK(lifeline_extension_read(extension, copy.fields, &copy.arena) == NULL);
    check_same_extensions(message, &copy, extension);
    if (value != NULL) {
        FUZZ_CHECK(lifeline_extension_write(extension, copy.fields, value, &copy.arena));
        check_same_extensions(message, &copy, NULL);
    }
    fuzz_free_message(&copy);
    lifeline_arena_destroy(&arena);
}

static void check_writing_extensions(const FuzzMessage *message, const FuzzInput *input) {
    size_t chosen = input->variant % fuzz_extension_count;
    for (size_t index = 0; index < fuzz_extension_count; index += 1) {
        // One of each type, because each takes the time of reading all.
        const LifelineMessageTable *extension = fuzz_extensions[(chosen + index) % fuzz_extension_count];
        if (extension->extended == message->table) return check_writing_extension(message, extension);
    }
}

// MARK: Decoding

// Decodes with the input's budget, and returns the outcome.
static LifelineFailure check_decoding(const FuzzInput *input) {
    FuzzMessage message = fuzz_create_message(input->table, NULL, 0, input->budget);
    if (message.fields == NULL) {
        FUZZ_CHECK(input->budget < fuzz_ample_budget);
        FUZZ_CHECK(lifeline_arena_block_bytes(&message.arena) == 0);
        return (LifelineFailure){.status = LIFELINE_OUT_OF_MEMORY};
    }
    FuzzBytes bytes = fuzz_copy_bytes(input->message, input->count, input->variant, input->variant & 7);
    fuzz_decode(lifeline_message_decode, &message, &bytes, &input->options);
    LifelineFailure failure = message.failure;
    fuzz_check_budget(&message, input->budget);
    check_extensions(&message, input);
    check_writing_extensions(&message, input);
    check_copy(&message, &bytes, input->options.maximum_depth);
    return failure;
}

// lifeline_message_parse with the input's budget, in memory of exactly the size that it asks for, from exactly the
// bytes of the input, which may be freed when it returns.
static void check_parsing(const FuzzInput *input, const LifelineFailure *ample) {
    size_t size = lifeline_message_parse_size(input->table, input->count, input->variant);
    uint8_t *memory = malloc(size);
    uint8_t *bytes = malloc(input->count);
    FUZZ_CHECK(memory != NULL && (bytes != NULL || input->count == 0));
    if (input->count > 0) memcpy(bytes, input->message, input->count);
    FuzzMessage parsed = {.table = input->table};
    parsed.fields = lifeline_message_parse(
        input->table, bytes, input->count, &parsed.arena, memory, size, &input->options, &parsed.failure);
    free(bytes);
    fuzz_check_outcome(&parsed, parsed.fields != NULL, input->count, &input->options);
    check_failure(&parsed.failure, ample);
    FUZZ_CHECK(input->budget < fuzz_ample_budget || parsed.failure.status != LIFELINE_OUT_OF_MEMORY);
    fuzz_check_budget(&parsed, input->budget);
    if (parsed.fields != NULL) {
        FuzzBytes copy = fuzz_copy_bytes(input->message, input->count, 0x00, 0);
        FuzzMessage decoded = fuzz_create_message(input->table, NULL, 0, fuzz_ample_budget);
        FUZZ_CHECK(fuzz_decode(lifeline_message_decode, &decoded, &copy, &input->options));
        FUZZ_CHECK(lifeline_message_equal(input->table, parsed.fields, decoded.fields));
        fuzz_free_message(&decoded);
        fuzz_free_bytes(&copy);
    }
    fuzz_free_message(&parsed);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    FuzzInput input;
    if (!fuzz_read_input(data, size, &input)) return -1;
    FuzzInput ample = fuzz_with_ample_budget(&input);
    LifelineFailure failure = check_decoding(&ample);
    FUZZ_CHECK(failure.status != LIFELINE_OUT_OF_MEMORY);
    check_bound(&ample, &failure);
    check_parsing(&ample, &failure);
    if (input.budget < fuzz_ample_budget) {
        LifelineFailure with_less = check_decoding(&input);
        check_failure(&with_less, &failure);
        check_parsing(&input, &failure);
    }
    return 0;
}
