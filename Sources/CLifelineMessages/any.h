// Helps with google.protobuf.Any in JSON and in text format.
#ifndef LIFELINE_ANY_H
#define LIFELINE_ANY_H

#include "lifeline_json.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The table of the message that a type URL names, such as "type.googleapis.com/sample.chat.v1.User", or NULL.
const LifelineMessageTable *_Nullable lifeline_find_by_url(
    LifelineFindMessage *_Nullable find, void *_Nullable context, const uint8_t *_Nullable url, size_t count);

// Stores the encoding of a message as the value of a bytes field.
LifelineStatus lifeline_store_encoded(
    LifelineArena *arena, const LifelineMessageTable *table, const void *message, void *value);

LIFELINE_ASSUME_NONNULL_END

#endif
