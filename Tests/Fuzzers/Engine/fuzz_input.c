#include "fuzz_input.h"

bool fuzz_read_input(const uint8_t *data, size_t size, FuzzInput *input) {
    // Around the edge, at other implementations' limit, and at the most that Swift passes on.
    static const uint32_t depths[16] = {100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, 99, 1000};
    if (size < 3) return false;
    uint8_t exponent = data[1] >> 4;
    size_t budget = exponent == 0 ? fuzz_ample_budget : (size_t)64 << exponent;  // 128 bytes ... 2 MiB
    *input = (FuzzInput){
        .table = fuzz_tables[(data[0] & 0x7f) % fuzz_table_count],
        .options = {
            .maximum_depth = depths[data[1] & 15],
            .budget = lifeline_arena_budget(budget),
            .accept_malformed_text = data[0] > 0x7f,
        },
        .budget = budget,
        .variant = data[2],
        .message = data + 3,
        .count = size - 3,
    };
    return true;
}

FuzzInput fuzz_with_ample_budget(const FuzzInput *input) {
    FuzzInput ample = *input;
    ample.budget = fuzz_ample_budget;
    ample.options.budget = lifeline_arena_budget(fuzz_ample_budget);
    return ample;
}

FuzzBytes fuzz_copy_bytes(const uint8_t *bytes, size_t count, uint8_t filler, uint8_t offset) {
    uint8_t *block = malloc(offset + count + LIFELINE_INPUT_SLOP);
    FUZZ_CHECK(block != NULL);
    if (count > 0) memcpy(block + offset, bytes, count);
    memset(block + offset + count, filler, LIFELINE_INPUT_SLOP);
    return (FuzzBytes){.block = block, .bytes = block + offset, .count = count};
}

void fuzz_free_bytes(FuzzBytes *bytes) {
    free(bytes->block);
    *bytes = (FuzzBytes){.block = NULL};
}

void fuzz_start_arena(LifelineArena *arena, void *memory, size_t size, size_t budget) {
    lifeline_arena_init(arena, memory, size, 0);
    arena->budget = lifeline_arena_budget(budget);
}

FuzzMessage fuzz_create_message(const LifelineMessageTable *table, void *memory, size_t size, size_t budget) {
    FuzzMessage message = {.table = table};
    fuzz_start_arena(&message.arena, memory, size, budget);
    message.fields = lifeline_message_create(table, &message.arena);
    return message;
}

void fuzz_free_message(FuzzMessage *message) {
    lifeline_arena_destroy(&message->arena);
    message->fields = NULL;
}

bool fuzz_decode(
    FuzzDecoder *decode, FuzzMessage *message, const FuzzBytes *bytes, const LifelineDecodeOptions *options) {
    bool decoded = decode(
        message->table, message->fields, bytes->bytes, bytes->count, &message->arena, options, &message->failure);
    fuzz_check_outcome(message, decoded, bytes->count, options);
    return decoded;
}

void fuzz_check_outcome(const FuzzMessage *message, bool decoded, size_t count, const LifelineDecodeOptions *options) {
    const LifelineFailure *failure = &message->failure;
    FUZZ_CHECK(decoded == (failure->status == LIFELINE_OK));
    FUZZ_CHECK(message->arena.may_hold_malformed_text || !options->accept_malformed_text);
    if (decoded) return;
    FUZZ_CHECK(failure->status <= LIFELINE_OUT_OF_MEMORY);  // what comes after it are not failures of decoding
    FUZZ_CHECK(failure->status != LIFELINE_INVALID_UTF8 || !options->accept_malformed_text);
    FUZZ_CHECK(failure->message != NULL);
    FUZZ_CHECK(failure->offset <= count);
}

void fuzz_check_budget(const FuzzMessage *message, size_t budget) {
    size_t left = (size_t)message->arena.budget * LIFELINE_ARENA_UNIT;
    FUZZ_CHECK(left <= budget && lifeline_arena_block_bytes(&message->arena) <= budget - left);
}

bool fuzz_same_failure(const LifelineFailure *left, const LifelineFailure *right) {
    return left->status == right->status && left->offset == right->offset && left->field_number == right->field_number
        && left->message == right->message;
}

bool fuzz_try_encode(
    const FuzzMessage *message, bool delimited, uint32_t maximum_depth, uint8_t **bytes, size_t *count) {
    LifelineFailure failure;
    LifelineEncoder encoder;
    lifeline_encoder_init(&encoder, NULL, 0, true);
    bool encoded =
        lifeline_message_encode(message->table, message->fields, delimited, maximum_depth, &encoder, &failure);
    *count = encoder.capacity - encoder.start;
    *bytes = NULL;
    if (encoded) {
        FUZZ_CHECK(failure.status == LIFELINE_OK);
        *bytes = malloc(*count);
        FUZZ_CHECK(*bytes != NULL || *count == 0);
        if (*count > 0) memcpy(*bytes, encoder.memory + encoder.start, *count);
    } else {
        FUZZ_CHECK(failure.status == LIFELINE_TOO_DEEP);
        FUZZ_CHECK(failure.message != NULL && failure.field_number != 0);
        FUZZ_CHECK(*count == 0);
    }
    lifeline_encoder_destroy(&encoder);
    return encoded;
}

uint8_t *fuzz_encode(const FuzzMessage *message, bool delimited, uint32_t depth, size_t *count) {
    uint8_t *bytes = NULL;
    FUZZ_CHECK(fuzz_try_encode(message, delimited, depth, &bytes, count));
    return bytes;
}

// Table sizes, and which tables were visited, while looking for the largest.
typedef struct Search {
    const LifelineMessageTable *visited[128];
    size_t count;
    size_t largest;
} Search;

static void visit(Search *search, const LifelineMessageTable *table) {
    for (size_t index = 0; index < search->count; index += 1) {
        if (search->visited[index] == table) return;
    }
    FUZZ_CHECK(search->count < sizeof search->visited / sizeof *search->visited);
    search->visited[search->count] = table;
    search->count += 1;
    if (table->size > search->largest) search->largest = table->size;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        if (table->fields[index].message != NULL) visit(search, table->fields[index].message);
    }
}

size_t fuzz_largest_struct(const LifelineMessageTable *table) {
    Search search = {.count = 0};
    visit(&search, table);
    return search.largest;
}
