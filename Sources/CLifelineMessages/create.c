// Creates messages and sets their fields.
#include "arena.h"
#include "lifeline_message.h"

void *lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena) {
    void *message = lifeline_arena_allocate_inline(arena, table->size);
    if (message != NULL) lifeline_clear_message(table, message, table->size);
    return message;
}

bool lifeline_bytes_assign(
    LifelineArena *arena, size_t *count, uint8_t **data, const uint8_t *new_bytes, size_t new_count) {
    if (new_count > *count) {
        uint8_t *memory = lifeline_arena_allocate_inline(arena, new_count);
        if (memory == NULL) return false;
        *data = memory;
    }
    *count = new_count;
    if (new_count > 0) memcpy(*data, new_bytes, new_count);
    return true;
}
