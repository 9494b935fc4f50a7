// Finds the types of messages and extensions by their numbers or names in an encoded message or in a text.
#ifndef LIFELINE_TYPES_H
#define LIFELINE_TYPES_H

#include "lifeline_table.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The table of the message with this full name, or NULL. For messages in google.protobuf.Any.
typedef const LifelineMessageTable *_Nullable LifelineFindMessage(
    void *_Nullable context, const char *name, size_t count);

// The table of an extension of `extended`: the one with this number, or, where `name` is not NULL, the one that text
// format and JSON call so between brackets. NULL if there is none.
typedef const LifelineMessageTable *_Nullable LifelineFindExtension(
    void *_Nullable context, const LifelineMessageTable *extended, uint32_t number, const char *_Nullable name,
    size_t count);

// The types that a caller knows.
typedef struct LifelineTypes {
    LifelineFindMessage *_Nullable find_message;
    LifelineFindExtension *_Nullable find_extension;
    void *_Nullable context;  // for both
} LifelineTypes;

LIFELINE_ASSUME_NONNULL_END

#endif
