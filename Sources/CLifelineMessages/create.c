// A new message is its type's default instance: every field absent.
#include "arena.h"
#include "lifeline_message.h"

void *lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena) {
    void *message = lifeline_arena_allocate(arena, table->size);
    if (message != NULL) lifeline_clear_message(table, message, table->size);
    return message;
}
