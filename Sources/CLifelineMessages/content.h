// Contents of messages that are encoded in other messages: of a google.protobuf.Any, and of extensions.
#ifndef LIFELINE_CONTENT_H
#define LIFELINE_CONTENT_H

#include "extensions.h"
#include "lifeline_types.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The table of the message that a type URL names, such as "type.googleapis.com/sample.chat.v1.User", or NULL.
const LifelineMessageTable *_Nullable lifeline_find_by_url(
    const LifelineTypes *types, const uint8_t *_Nullable url, size_t count);

// A content that is decoded while it is printed.
typedef struct LifelineContent {
    LifelineArena arena;
    void *_Nullable memory;
    size_t byte_count;  // of all that it takes
} LifelineContent;

// The memory that is left for contents that are open at once, and how many more may be opened.
typedef struct LifelineContentBudget {
    size_t byte_count;
    uint32_t depth;
} LifelineContentBudget;

static inline LifelineContentBudget lifeline_content_budget(void) {
    return (LifelineContentBudget){.byte_count = 64 << 20, .depth = 100};  // as much as decoding takes by default
}

// Decodes `bytes` as a message of `table`, with messages at most `depth` deep. The caller closes what was opened.
LifelineStatus lifeline_open_message(
    LifelineContent *content, const LifelineMessageTable *table, const uint8_t *_Nullable bytes, size_t count,
    uint32_t depth, LifelineContentBudget *budget, const void *_Nullable *_Nonnull message);

// Decodes the extensions of `message` that are known and of their types. The caller closes what was opened.
LifelineStatus lifeline_open_extensions(
    LifelineContent *content, const LifelineMessageTable *table, const void *message, const LifelineTypes *types,
    uint32_t depth, LifelineContentBudget *budget, LifelineExtensions *extensions);

void lifeline_close_content(LifelineContent *content, LifelineContentBudget *budget);

// Stores the encoding of a message as the value of a bytes field.
LifelineStatus lifeline_store_encoded(
    LifelineArena *arena, const LifelineMessageTable *table, const void *message, void *value);

LIFELINE_ASSUME_NONNULL_END

#endif
