// What the decoder and the encoder know about a message type. protoc-gen-lifeline writes one table per message, as
// constants: nothing is built at start-up.
//
// A table describes the struct that protoc-gen-c generated from the rewritten schema:
//   - a `string` or `bytes` field is a ProtobufCBinaryData {len, data};
//   - an `enum` field is an int32_t, for it may hold any number;
//   - a repeated field is `size_t n_x; T *x;`, and a map field is a repeated field of entry messages with the fields
//     key = 1 and value = 2, sorted by key without duplicates once a message is decoded;
//   - the elements of a repeated or map field are preceded by a LifelineArrayHeader (lifeline_array.h);
//   - a NULL element or map value, and the NULL pointer of a oneof's active member, is an empty submessage.
#ifndef LIFELINE_TABLE_H
#define LIFELINE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Numbered as FieldDescriptorProto.Type in google/protobuf/descriptor.proto. There is no group (10).
enum {
    LIFELINE_TYPE_DOUBLE = 1,
    LIFELINE_TYPE_FLOAT = 2,
    LIFELINE_TYPE_INT64 = 3,
    LIFELINE_TYPE_UINT64 = 4,
    LIFELINE_TYPE_INT32 = 5,
    LIFELINE_TYPE_FIXED64 = 6,
    LIFELINE_TYPE_FIXED32 = 7,
    LIFELINE_TYPE_BOOL = 8,
    LIFELINE_TYPE_STRING = 9,
    LIFELINE_TYPE_MESSAGE = 11,
    LIFELINE_TYPE_BYTES = 12,
    LIFELINE_TYPE_UINT32 = 13,
    LIFELINE_TYPE_ENUM = 14,
    LIFELINE_TYPE_SFIXED32 = 15,
    LIFELINE_TYPE_SFIXED64 = 16,
    LIFELINE_TYPE_SINT32 = 17,
    LIFELINE_TYPE_SINT64 = 18,
};

// How a struct says whether a field is there.
enum {
    LIFELINE_PRESENCE_IMPLICIT = 0,  // its value is not zero or empty (proto3 without `optional`)
    LIFELINE_PRESENCE_FLAG = 1,      // the protobuf_c_boolean at `quantifier_offset` is not 0 (proto2)
    LIFELINE_PRESENCE_POINTER = 2,   // its pointer is not NULL (submessages outside a oneof)
    LIFELINE_PRESENCE_ONEOF = 3,     // the uint32_t at `quantifier_offset` is the field's number
    LIFELINE_PRESENCE_REPEATED = 4,  // the size_t at `quantifier_offset` is its count
    LIFELINE_PRESENCE_MAP = 5,       // likewise, of entry messages
    LIFELINE_PRESENCE_ALWAYS = 6,    // it is written whatever it holds (key and value of a map's entry)
};

enum {
    LIFELINE_FIELD_PACKED = 1 << 0,         // repeated: encode in the packed form (both forms are decoded)
    LIFELINE_FIELD_REQUIRED = 1 << 1,       // proto2 `required`
    LIFELINE_FIELD_VALIDATE_UTF8 = 1 << 2,  // proto3 `string`: refuse what is not UTF-8
    LIFELINE_FIELD_CLOSED_ENUM = 1 << 3,    // enum of proto2: numbers that it does not declare become unknown fields
};

typedef struct LifelineMessageTable LifelineMessageTable;

// The numbers that an enum declares, ascending, and the first name of each.
typedef struct LifelineEnum {
    size_t count;
    const int32_t *numbers;
    const char *_Nonnull const *_Nonnull names;
} LifelineEnum;

typedef struct LifelineField {
    uint32_t number;
    uint8_t type;
    uint8_t presence;
    uint16_t flags;
    uint32_t offset;             // of the value, in the struct
    uint32_t quantifier_offset;  // see LIFELINE_PRESENCE_…; 0 where there is none
    const LifelineMessageTable *_Nullable message;  // LIFELINE_TYPE_MESSAGE: the submessage's, or the entry's, table
    const LifelineEnum *_Nullable enumeration;      // LIFELINE_TYPE_ENUM
    const char *name;                               // as in the .proto file
} LifelineField;

enum {
    LIFELINE_MESSAGE_MAP_ENTRY = 1 << 0,
    LIFELINE_MESSAGE_HAS_REQUIRED = 1 << 1,  // it or a message reachable from it has a `required` field
};

struct LifelineMessageTable {
    const char *full_name;         // "package.Outer.Inner"
    const void *default_instance;  // an initialised struct of `size` bytes
    const LifelineField *fields;   // ascending by number
    uint32_t field_count;
    uint32_t dense_count;          // fields[i].number == i + 1 for every i below this
    uint32_t size;                 // of the struct, in bytes
    uint32_t flags;
};

LIFELINE_ASSUME_NONNULL_END

#endif
