// Making messages and setting their fields.
#include "arena.h"
#include "lifeline_message.h"

// A new message is its type's default instance: every field absent.
void *lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena) {
    void *message = lifeline_arena_allocate(arena, table->size);
    if (message != NULL) lifeline_clear_message(table, message, table->size);
    return message;
}

bool lifeline_bytes_assign(LifelineArena *arena, const uint8_t *bytes, size_t count, ProtobufCBinaryData *value) {
    if (count > value->len) {
        uint8_t *memory = lifeline_arena_allocate(arena, count);
        if (memory == NULL) return false;
        value->data = memory;
    }
    value->len = count;
    if (count > 0) memcpy(value->data, bytes, count);
    return true;
}
