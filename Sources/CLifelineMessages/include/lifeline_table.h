// Describes a message type to the decoder and the encoder. protoc-gen-lifeline writes one table per message, as
// constants, so that nothing is built at start-up.
//
// A table describes the struct that protoc-gen-c generated from the rewritten schema:
//   - a `string` or `bytes` field is a ProtobufCBinaryData {len, data};
//   - an `enum` field is an int32_t, as it may hold any number;
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

// Numbered as FieldDescriptorProto.Type in google/protobuf/descriptor.proto.
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
    LIFELINE_TYPE_GROUP = 10,  // only in a form: the field's type is MESSAGE, with LIFELINE_FIELD_GROUP
    LIFELINE_TYPE_MESSAGE = 11,
    LIFELINE_TYPE_BYTES = 12,
    LIFELINE_TYPE_UINT32 = 13,
    LIFELINE_TYPE_ENUM = 14,
    LIFELINE_TYPE_SFIXED32 = 15,
    LIFELINE_TYPE_SFIXED64 = 16,
    LIFELINE_TYPE_SINT32 = 17,
    LIFELINE_TYPE_SINT64 = 18,
};

// How a struct says whether a field is present. lifeline_is_present reads it.
enum {
    LIFELINE_PRESENCE_IMPLICIT = 0,  // its value is neither zero nor empty (proto3 without `optional`)
    LIFELINE_PRESENCE_FLAG = 1,      // the protobuf_c_boolean at `quantifier_offset` is not 0 (proto2)
    LIFELINE_PRESENCE_POINTER = 2,   // its pointer is not NULL (submessages outside a oneof)
    LIFELINE_PRESENCE_ONEOF = 3,     // the uint32_t at `quantifier_offset` is the field's number
    LIFELINE_PRESENCE_REPEATED = 4,  // the size_t at `quantifier_offset` is its count
    LIFELINE_PRESENCE_MAP = 5,       // likewise, of entry messages
    LIFELINE_PRESENCE_ALWAYS = 6,    // it is always present (key and value of a map's entry)
};

// Presence and type of a singular field in one number. Repeated fields and maps have 0.
#define LIFELINE_FORM(presence, type) ((presence) * 20 + (type))

enum {
    LIFELINE_FIELD_PACKED = 1 << 0,         // repeated: encode in the packed form (both forms are decoded)
    LIFELINE_FIELD_REQUIRED = 1 << 1,       // proto2's `required`, or LEGACY_REQUIRED
    LIFELINE_FIELD_VALIDATE_UTF8 = 1 << 2,  // string: must be UTF-8
    LIFELINE_FIELD_CLOSED_ENUM = 1 << 3,    // enum: undeclared numbers become unknown fields
    LIFELINE_FIELD_GROUP = 1 << 4,          // message: encoded between two tags, without a length
    LIFELINE_FIELD_NAMED_BY_TYPE = 1 << 5,  // group: in text format, its name is its message's
};

// The version of the tables and of the functions that generated code calls. Generated code names the one that it was
// made for, so that the compiler refuses it where this is another one.
#define LIFELINE_INTERFACE_VERSION 6

typedef struct LifelineMessageTable LifelineMessageTable;
typedef struct LifelineFile LifelineFile;

// The place of a name in a text with many names. So a name needs no pointer, which would have to be relocated.
typedef struct LifelineName {
    uint32_t offset;
    uint32_t count;  // without the NUL after it
} LifelineName;

// Names, and their order for looking them up.
typedef struct LifelineNames {
    const char *text;
    const LifelineName *names;
    // Indices in `names`, sorted by length, then bytes. An enum lists each name once. Field i has name 2i in the .proto
    // file and 2i+1 in JSON. Of fields with the same .proto name, or the same JSON name, only the first is listed.
    // Where a .proto name equals a JSON name, the .proto name comes first; if both are of the same field, only the
    // .proto name is listed.
    const uint32_t *order;
    uint32_t order_count;
} LifelineNames;

enum {
    LIFELINE_ENUM_NULL_VALUE = 1 << 0,  // google.protobuf.NullValue
};

// The values that an enum declares.
typedef struct LifelineEnum {
    const char *full_name;
    const int32_t *numbers;  // ascending, each once
    // Of each number the first name that was declared for it. Behind those, all other names.
    LifelineNames names;
    const int32_t *_Nullable alias_numbers;  // those of the other names
    uint32_t count;                          // of `numbers`
    uint32_t flags;
} LifelineEnum;

typedef struct LifelineField {
    uint32_t number;
    uint8_t type;
    uint8_t presence;
    uint8_t flags;
    uint8_t form;                // LIFELINE_FORM of presence and type
    uint32_t offset;             // of the value, in the struct
    uint32_t quantifier_offset;  // of the flag, the oneof's case or the count; 0 when the presence needs none
    // The tag in its encoding, so that a single store puts it before the value; that of a group's start. The most
    // significant bytes are the 1 to 5 bytes of the tag, in the order of the wire. The least significant byte is their
    // number.
    uint64_t encoded_tag;
    const LifelineMessageTable *_Nullable message;  // LIFELINE_TYPE_MESSAGE: the submessage's, or the entry's, table
    const LifelineEnum *_Nullable enumeration;      // LIFELINE_TYPE_ENUM
} LifelineField;

enum {
    LIFELINE_MESSAGE_MAP_ENTRY = 1 << 0,
    LIFELINE_MESSAGE_HAS_REQUIRED = 1 << 1,  // it, or a message that can be reached from it, has a `required` field
    LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT = 1 << 2,  // likewise, a `string` without LIFELINE_FIELD_VALIDATE_UTF8
    // The reader of JSON cannot guess which field comes next: a name in JSON has to be escaped, or two fields have it.
    LIFELINE_MESSAGE_NEEDS_NAME_SEARCH = 1 << 3,
    LIFELINE_MESSAGE_SET = 1 << 4,  // message_set_wire_format: it has extensions only, encoded as items
};

// Messages of google.protobuf that have a JSON form of their own.
typedef enum LifelineWellKnown {
    LIFELINE_WELL_KNOWN_NONE = 0,
    LIFELINE_WELL_KNOWN_ANY,
    LIFELINE_WELL_KNOWN_TIMESTAMP,
    LIFELINE_WELL_KNOWN_DURATION,
    LIFELINE_WELL_KNOWN_FIELD_MASK,
    LIFELINE_WELL_KNOWN_STRUCT,
    LIFELINE_WELL_KNOWN_VALUE,
    LIFELINE_WELL_KNOWN_LIST_VALUE,
    LIFELINE_WELL_KNOWN_WRAPPER,  // DoubleValue and the like: the field `value` alone
} LifelineWellKnown;

// Fields with neighbouring numbers whose presence can be ruled out together: none of them is present while the `size`
// bytes from `offset` are all zero. So a message with hundreds of fields costs little when few of them are present.
typedef struct LifelineFieldGroup {
    uint32_t first_field;  // index in `fields`; the group ends where the next one begins
    uint32_t offset;
    uint32_t size;
} LifelineFieldGroup;

enum { LIFELINE_DISPATCH_COUNT = 32 };

struct LifelineMessageTable {
    const char *full_name;         // "package.Outer.Inner"
    const void *default_instance;  // a struct of `size` bytes, all zero but for its descriptor
    const LifelineField *fields;   // ascending by number
    const LifelineFieldGroup *_Nullable groups;  // all fields, by number; NULL when there are few
    uint32_t group_count;
    uint32_t field_count;
    uint32_t dense_count;          // fields[i].number == i + 1 for every i below this
    uint32_t size;                 // of the struct, in bytes; a multiple of 8
    uint32_t flags;
    // How to read a field, by five bits of the first byte of its tag: see LIFELINE_DISPATCH.
    uint64_t dispatch[LIFELINE_DISPATCH_COUNT];

    // From here on, for JSON, text, errors and reflection only: neither decoding nor encoding touches it.

    // Of the field `fields[i]`: names[2 * i] as in the .proto file, and names[2 * i + 1] in JSON.
    LifelineNames names;
    uint32_t well_known;  // LifelineWellKnown
    // Of an extension, which is the only field, the message that has it; see lifeline_extensions.h. Its name is the
    // extension's full name in brackets, in text format and in JSON.
    const LifelineMessageTable *_Nullable extended;
    // The .proto file that declares the message. NULL in the table of a message whose type is known only at run time.
    const LifelineFile *_Nullable file;
};

// A .proto file, for reflection.
struct LifelineFile {
    const char *path;   // by which other files import it
    const char *bytes;  // a google.protobuf.FileDescriptorProto with all options, but without positions and comments
    // The imported files; NULL where one is not linked, as it was imported for its options only.
    const LifelineFile *_Nullable const *_Nullable dependencies;
    // All messages, each directly followed by those nested in it.
    const LifelineMessageTable *_Nonnull const *_Nullable messages;
    uint32_t count;  // of `bytes`
    uint32_t dependency_count;
    uint32_t message_count;
};

// An entry of a table's `dispatch`: all that the decoder needs to read a field, in one word. Its index is `first byte
// of the tag >> 3`: the field's number up to 15, and 16 + number % 16 up to 2047. When several fields could have an
// entry at one index, the field with the lowest number has it. The others, and all fields without an entry (0), are
// looked up by number.
//
//   bits 0-15 the tag as it is in the input, its first byte lowest bits 16-31 the value's offset bits 32-47 the
//   quantifier's offset bits 48-55 LIFELINE_SHAPE_MARKED: the number for the quantifier; submessages: the field's index
//   in `fields` bits 56-63 the handler that reads the field: see LIFELINE_HANDLER
//
// Fields after the first 64 KiB of a struct have no entry.
#define LIFELINE_DISPATCH(kind, shape, tag, detail, offset, quantifier_offset) \
    LIFELINE_DISPATCH_ENTRY(LIFELINE_KIND_##kind, LIFELINE_SHAPE_##shape, tag, detail, offset, quantifier_offset)

// The same, with the kind and the shape as numbers.
#define LIFELINE_DISPATCH_ENTRY(kind, shape, tag, detail, offset, quantifier_offset)                 \
    ((offset) > UINT16_MAX || (quantifier_offset) > UINT16_MAX                                       \
         ? (uint64_t)0                                                                               \
         : (uint64_t)(tag) | (uint64_t)(offset) << 16 | (uint64_t)(quantifier_offset) << 32          \
               | (uint64_t)(detail) << 48 | (uint64_t)LIFELINE_HANDLER(kind, shape, (tag) > 0xFF) << 56)

// Handlers are numbered by the kind of value that they read and by where they put it. Handler 0 looks the field up.
#define LIFELINE_HANDLER(kind, shape, long_tag) (1 + ((kind) * 4 + (shape)) * 2 + (long_tag))

// How a value is read.
enum {
    LIFELINE_KIND_VARINT32 = 0,  // int32, uint32, open enum
    LIFELINE_KIND_VARINT64 = 1,
    LIFELINE_KIND_BOOL = 2,
    LIFELINE_KIND_SINT32 = 3,
    LIFELINE_KIND_SINT64 = 4,
    LIFELINE_KIND_FIXED32 = 5,  // float too
    LIFELINE_KIND_FIXED64 = 6,  // double too
    LIFELINE_KIND_BYTES = 7,    // and strings that are not validated
    LIFELINE_KIND_UTF8 = 8,
    LIFELINE_KIND_MESSAGE = 9,
};

// Where a value goes.
enum {
    LIFELINE_SHAPE_PLAIN = 0,     // only the value is stored
    LIFELINE_SHAPE_MARKED = 1,    // a flag or a oneof's case is stored too
    LIFELINE_SHAPE_REPEATED = 2,  // it is appended
    LIFELINE_SHAPE_PACKED = 3,    // many are appended
    LIFELINE_SHAPE_MAP = 3,       // of LIFELINE_KIND_MESSAGE: an entry is inserted
};

enum { LIFELINE_HANDLER_COUNT = LIFELINE_HANDLER(LIFELINE_KIND_MESSAGE, LIFELINE_SHAPE_MAP, 1) + 1 };

// The macros, for tables that Swift makes at run time.
static inline uint8_t lifeline_form(uint32_t presence, uint32_t type) {
    return (uint8_t)LIFELINE_FORM(presence, type);
}

static inline uint64_t lifeline_dispatch_entry(
    uint32_t kind, uint32_t shape, uint32_t tag, uint32_t detail, uint32_t offset, uint32_t quantifier_offset) {
    return LIFELINE_DISPATCH_ENTRY(kind, shape, tag, detail, offset, quantifier_offset);
}

LIFELINE_ASSUME_NONNULL_END

#endif
