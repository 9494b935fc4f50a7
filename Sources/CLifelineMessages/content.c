#include "content.h"

#include <stdlib.h>

#include "fields.h"

const LifelineMessageTable *lifeline_find_by_url(const LifelineTypes *types, const uint8_t *url, size_t count) {
    if (types->find_message == NULL) return NULL;
    // There is a slash, and the name is after the last one.
    size_t start = count;
    while (start > 0 && url[start - 1] != '/') start -= 1;
    if (start == 0 || start == count) return NULL;
    return types->find_message(types->context, (const char *)url + start, count - start);
}

LifelineStatus lifeline_store_encoded(
    LifelineArena *arena, const LifelineMessageTable *table, const void *message, void *value) {
    enum { DEPTH = 1000 };  // as much as can be decoded
    LifelineEncoder encoder;
    LifelineFailure failure = {.status = LIFELINE_OK};
    lifeline_encoder_init(&encoder, NULL, 0, true);
    if (lifeline_message_encode(table, message, false, DEPTH, &encoder, &failure)) {
        size_t count = encoder.capacity - encoder.start;
        uint8_t *memory = count == 0 ? NULL : lifeline_arena_allocate(arena, count);
        if (memory != NULL) memcpy(memory, encoder.memory + encoder.start, count);
        if (count > 0 && memory == NULL) failure.status = LIFELINE_OUT_OF_MEMORY;
        if (failure.status == LIFELINE_OK) lifeline_store_bytes(value, memory, count);
    }
    lifeline_encoder_destroy(&encoder);
    return failure.status;
}

// Notes what an opened content takes.
static void charge(LifelineContent *content, size_t size, LifelineContentBudget *budget) {
    content->byte_count = size + lifeline_arena_block_bytes(&content->arena);
    if (content->byte_count > budget->byte_count) content->byte_count = budget->byte_count;
    budget->byte_count -= content->byte_count;
    budget->depth -= 1;
}

LifelineStatus lifeline_open_message(
    LifelineContent *content, const LifelineMessageTable *table, const uint8_t *bytes, size_t count, uint32_t depth,
    LifelineContentBudget *budget, const void **message) {
    size_t size = lifeline_message_parse_size(table, count, 0);
    if (budget->depth == 0) return LIFELINE_TOO_DEEP;
    if (size > budget->byte_count) return LIFELINE_OUT_OF_MEMORY;
    content->memory = malloc(size);
    if (content->memory == NULL) return LIFELINE_OUT_OF_MEMORY;
    LifelineDecodeOptions options = {
        .maximum_depth = depth, .budget = lifeline_arena_budget(budget->byte_count - size)};
    LifelineFailure failure = {.status = LIFELINE_OK};
    *message = lifeline_message_parse(
        table, bytes, count, &content->arena, content->memory, size, &options, &failure);
    charge(content, size, budget);
    if (*message != NULL) return LIFELINE_OK;
    lifeline_close_content(content, budget);
    bool is_limit = failure.status == LIFELINE_OUT_OF_MEMORY || failure.status == LIFELINE_TOO_DEEP;
    return is_limit ? failure.status : LIFELINE_WRONG_KIND;
}

LifelineStatus lifeline_open_extensions(
    LifelineContent *content, const LifelineMessageTable *table, const void *message, const LifelineTypes *types,
    uint32_t depth, LifelineContentBudget *budget, LifelineExtensions *extensions) {
    if (budget->depth == 0) return LIFELINE_TOO_DEEP;
    content->memory = NULL;
    lifeline_arena_init(&content->arena, content, 0, 0);  // without memory to start with
    content->arena.budget = lifeline_arena_budget(budget->byte_count);
    LifelineDecodeOptions options = {.maximum_depth = depth};
    LifelineFailure failure = {.status = LIFELINE_OK};
    bool is_read = lifeline_read_extensions(
        table, message, types, false, &options, &content->arena, extensions, &failure);
    charge(content, 0, budget);
    if (is_read) return LIFELINE_OK;
    lifeline_close_content(content, budget);
    return failure.status;
}

void lifeline_close_content(LifelineContent *content, LifelineContentBudget *budget) {
    budget->byte_count += content->byte_count;
    budget->depth += 1;
    lifeline_arena_destroy(&content->arena);
    free(content->memory);
}
