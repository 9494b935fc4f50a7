// A new message is its type's default instance, copied: a compile-time constant with the descriptor set and every
// field absent.
#include "fields.h"
#include "lifeline_message.h"

void *lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena) {
    void *message = lifeline_arena_allocate(arena, table->size);
    if (message != NULL) memcpy(message, table->default_instance, table->size);
    return message;
}
