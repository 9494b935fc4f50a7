// Goes through the unknown fields of a message.
#ifndef LIFELINE_UNKNOWN_FIELDS_H
#define LIFELINE_UNKNOWN_FIELDS_H

#include "fields.h"
#include "varint.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineUnknownField {
    uint32_t tag;
    const uint8_t *value;  // everything after the tag; for a group, with the end tag
    size_t count;          // of the value
    // The field as an extension is encoded: the same, but for the item of a message set, which stands for an extension
    // with the number of its type.
    uint32_t extension_tag;
    const uint8_t *extension_value;
    size_t extension_count;
} LifelineUnknownField;

typedef struct LifelineUnknownFields {
    const ProtobufCMessageUnknownField *_Nullable runs;
    size_t run_count;
    LifelineInput input;  // what is left of the first run
    bool is_message_set;
} LifelineUnknownFields;

LifelineUnknownFields lifeline_unknown_fields(const LifelineMessageTable *table, const void *message);

// False when there are no more.
bool lifeline_next_unknown_field(LifelineUnknownFields *fields, LifelineUnknownField *field);

// Goes through encoded fields.
static inline LifelineUnknownFields lifeline_encoded_fields(const uint8_t *bytes, size_t count) {
    return (LifelineUnknownFields){.input = {.next = bytes, .end = bytes + count}};
}

LIFELINE_ASSUME_NONNULL_END

#endif
