// Helps with google.protobuf.Any in JSON and in text format.
#ifndef LIFELINE_ANY_H
#define LIFELINE_ANY_H

#include "lifeline_json.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The table of the message that a type URL names, such as "type.googleapis.com/sample.chat.v1.User", or NULL.
const LifelineMessageTable *_Nullable lifeline_find_by_url(
    LifelineFindMessage *_Nullable find, void *_Nullable context, const uint8_t *_Nullable url, size_t count);

// The message in a google.protobuf.Any, while it is printed.
typedef struct LifelineAnyContent {
    const LifelineMessageTable *table;
    const void *message;
    LifelineArena arena;
    void *memory;
    size_t byte_count;  // of all that it takes
} LifelineAnyContent;

// The memory that is left for contents that are open at once, and how many more may be opened.
typedef struct LifelineAnyBudget {
    size_t byte_count;
    uint32_t depth;
} LifelineAnyBudget;

static inline LifelineAnyBudget lifeline_any_budget(void) {
    return (LifelineAnyBudget){.byte_count = 64 << 20, .depth = 100};  // as much as decoding takes by default
}

// Decodes `bytes` as a message of `table`, with messages at most `depth` deep. The caller closes what was opened.
LifelineStatus lifeline_any_open(
    LifelineAnyContent *content, const LifelineMessageTable *table, const uint8_t *_Nullable bytes, size_t count,
    uint32_t depth, LifelineAnyBudget *budget);

void lifeline_any_close(LifelineAnyContent *content, LifelineAnyBudget *budget);

// Stores the encoding of a message as the value of a bytes field.
LifelineStatus lifeline_store_encoded(
    LifelineArena *arena, const LifelineMessageTable *table, const void *message, void *value);

LIFELINE_ASSUME_NONNULL_END

#endif
