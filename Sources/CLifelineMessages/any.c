#include "any.h"

#include "fields.h"

const LifelineMessageTable *lifeline_find_by_url(
    LifelineFindMessage *find, void *context, const uint8_t *url, size_t count) {
    if (find == NULL) return NULL;
    // The name stands behind the last slash, and there is one.
    size_t start = count;
    while (start > 0 && url[start - 1] != '/') start -= 1;
    if (start == 0 || start == count) return NULL;
    return find(context, (const char *)url + start, count - start);
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
