// Reading and writing the fields of a struct that a table describes.
//
// Fields go through memcpy, which compilers turn into one load or store: the structs' real types are not known here,
// and their bytes may be accessed in no other way.
#ifndef LIFELINE_FIELDS_H
#define LIFELINE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "lifeline_table.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Fixed-size numbers are copied from and to the wire as they are in memory, which must be little-endian."
#endif

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "Structs and arenas are laid out for 64-bit processors.");
_Static_assert(sizeof(ProtobufCMessage) == 24, "Every struct is cleared as if it began with three words.");
_Static_assert(sizeof(protobuf_c_boolean) == 4, "Flags are written and compared as four bytes.");

LIFELINE_ASSUME_NONNULL_BEGIN

enum {
    LIFELINE_WIRE_VARINT = 0,
    LIFELINE_WIRE_FIXED64 = 1,
    LIFELINE_WIRE_LENGTH_DELIMITED = 2,
    LIFELINE_WIRE_START_GROUP = 3,
    LIFELINE_WIRE_END_GROUP = 4,
    LIFELINE_WIRE_FIXED32 = 5,
};

// The wire type of one value of a field.
static inline uint32_t lifeline_wire_type(const LifelineField *field) {
    static const uint8_t wire_types[] = {
        [LIFELINE_TYPE_DOUBLE] = LIFELINE_WIRE_FIXED64,
        [LIFELINE_TYPE_FLOAT] = LIFELINE_WIRE_FIXED32,
        [LIFELINE_TYPE_INT64] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_UINT64] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_INT32] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_FIXED64] = LIFELINE_WIRE_FIXED64,
        [LIFELINE_TYPE_FIXED32] = LIFELINE_WIRE_FIXED32,
        [LIFELINE_TYPE_BOOL] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_STRING] = LIFELINE_WIRE_LENGTH_DELIMITED,
        [LIFELINE_TYPE_MESSAGE] = LIFELINE_WIRE_LENGTH_DELIMITED,
        [LIFELINE_TYPE_BYTES] = LIFELINE_WIRE_LENGTH_DELIMITED,
        [LIFELINE_TYPE_UINT32] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_ENUM] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_SFIXED32] = LIFELINE_WIRE_FIXED32,
        [LIFELINE_TYPE_SFIXED64] = LIFELINE_WIRE_FIXED64,
        [LIFELINE_TYPE_SINT32] = LIFELINE_WIRE_VARINT,
        [LIFELINE_TYPE_SINT64] = LIFELINE_WIRE_VARINT,
    };
    return wire_types[field->type];
}

// Bytes of one value of a field in the struct, or in the elements of a repeated field.
static inline size_t lifeline_value_size(const LifelineField *field) {
    static const uint8_t sizes[] = {
        [LIFELINE_TYPE_DOUBLE] = 8,
        [LIFELINE_TYPE_FLOAT] = 4,
        [LIFELINE_TYPE_INT64] = 8,
        [LIFELINE_TYPE_UINT64] = 8,
        [LIFELINE_TYPE_INT32] = 4,
        [LIFELINE_TYPE_FIXED64] = 8,
        [LIFELINE_TYPE_FIXED32] = 4,
        [LIFELINE_TYPE_BOOL] = sizeof(protobuf_c_boolean),
        [LIFELINE_TYPE_STRING] = sizeof(ProtobufCBinaryData),
        [LIFELINE_TYPE_MESSAGE] = sizeof(void *),
        [LIFELINE_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
        [LIFELINE_TYPE_UINT32] = 4,
        [LIFELINE_TYPE_ENUM] = 4,
        [LIFELINE_TYPE_SFIXED32] = 4,
        [LIFELINE_TYPE_SFIXED64] = 8,
        [LIFELINE_TYPE_SINT32] = 4,
        [LIFELINE_TYPE_SINT64] = 8,
    };
    return sizes[field->type];
}

static inline bool lifeline_is_bytes(const LifelineField *field) {
    return field->type == LIFELINE_TYPE_STRING || field->type == LIFELINE_TYPE_BYTES;
}

static inline bool lifeline_is_repeated(const LifelineField *field) {
    return field->presence == LIFELINE_PRESENCE_REPEATED || field->presence == LIFELINE_PRESENCE_MAP;
}

static inline const uint8_t *lifeline_at(const void *message, uint32_t offset) {
    return (const uint8_t *)message + offset;
}

static inline void *lifeline_mutable_at(void *message, uint32_t offset) {
    return (uint8_t *)message + offset;
}

static inline uint32_t lifeline_load32(const void *value) {
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits;
}

// The bits of a scalar of 4 or 8 bytes.
static inline uint64_t lifeline_load_scalar(const void *value, size_t size) {
    if (size == 4) return lifeline_load32(value);
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits;
}

static inline void lifeline_store_scalar(void *value, size_t size, uint64_t bits) {
    memcpy(value, &bits, size);
}

static inline ProtobufCBinaryData lifeline_load_bytes(const void *value) {
    ProtobufCBinaryData bytes;
    memcpy(&bytes, value, sizeof bytes);
    return bytes;
}

static inline void lifeline_store_bytes(void *value, const uint8_t *_Nullable data, size_t length) {
    ProtobufCBinaryData bytes = {.len = length, .data = (uint8_t *)(uintptr_t)data};
    memcpy(value, &bytes, sizeof bytes);
}

static inline void *_Nullable lifeline_load_pointer(const void *value) {
    void *pointer;
    memcpy(&pointer, value, sizeof pointer);
    return pointer;
}

static inline void lifeline_store_pointer(void *value, void *_Nullable pointer) {
    memcpy(value, &pointer, sizeof pointer);
}

// A submessage to read from: where there is none, one with every field absent.
static inline const void *lifeline_load_message(const LifelineField *field, const void *value) {
    const void *message = lifeline_load_pointer(value);
    return message == NULL ? field->message->default_instance : message;
}

static inline size_t lifeline_count(const LifelineField *field, const void *message) {
    size_t count;
    memcpy(&count, lifeline_at(message, field->quantifier_offset), sizeof count);
    return count;
}

static inline void lifeline_set_count(const LifelineField *field, void *message, size_t count) {
    memcpy(lifeline_mutable_at(message, field->quantifier_offset), &count, sizeof count);
}

static inline bool lifeline_is_zero(const uint8_t *bytes, size_t size) {
    uint64_t all = 0;
    for (; size >= 8; bytes += 8, size -= 8) all |= lifeline_load_scalar(bytes, 8);
    for (; size > 0; bytes += 1, size -= 1) all |= *bytes;
    return all == 0;
}

static inline bool lifeline_is_present(const LifelineField *field, const void *message) {
    const void *value = lifeline_at(message, field->offset);
    switch (field->presence) {
        case LIFELINE_PRESENCE_IMPLICIT:
            // By its bits: -0.0 is present.
            if (lifeline_is_bytes(field)) return lifeline_load_bytes(value).len != 0;
            return lifeline_load_scalar(value, lifeline_value_size(field)) != 0;
        case LIFELINE_PRESENCE_FLAG:
            return lifeline_load32(lifeline_at(message, field->quantifier_offset)) != 0;
        case LIFELINE_PRESENCE_POINTER:
            return lifeline_load_pointer(value) != NULL;
        case LIFELINE_PRESENCE_ONEOF:
            return lifeline_load32(lifeline_at(message, field->quantifier_offset)) == field->number;
        case LIFELINE_PRESENCE_REPEATED:
        case LIFELINE_PRESENCE_MAP:
            return lifeline_count(field, message) != 0;
        default:
            return true;
    }
}

// Records that a singular field's value was stored.
static inline void lifeline_mark_present(const LifelineField *field, void *message) {
    uint32_t mark = field->presence == LIFELINE_PRESENCE_ONEOF ? field->number : 1;
    if (field->presence == LIFELINE_PRESENCE_ONEOF || field->presence == LIFELINE_PRESENCE_FLAG) {
        memcpy(lifeline_mutable_at(message, field->quantifier_offset), &mark, sizeof mark);
    }
}

// The field of that number, or NULL.
static inline const LifelineField *_Nullable lifeline_find_field(const LifelineMessageTable *table, uint32_t number) {
    uint32_t index = number - 1;  // 0 becomes the largest number, which no table has
    if (index < table->dense_count) return &table->fields[index];
    uint32_t low = table->dense_count;
    uint32_t high = table->field_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->fields[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < table->field_count && table->fields[low].number == number ? &table->fields[low] : NULL;
}

// Where `number` stands among those that the enum declares, or its count when it does not.
static inline size_t lifeline_enum_find(const LifelineEnum *enumeration, int32_t number) {
    size_t low = 0;
    size_t high = enumeration->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (enumeration->numbers[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < enumeration->count && enumeration->numbers[low] == number ? low : enumeration->count;
}

static inline bool lifeline_is_closed_enum(const LifelineField *field) {
    return (field->flags & LIFELINE_FIELD_CLOSED_ENUM) != 0;
}

static inline bool lifeline_enum_knows(const LifelineField *field, int32_t number) {
    const LifelineEnum *enumeration = field->enumeration;
    return enumeration != NULL && lifeline_enum_find(enumeration, number) < enumeration->count;
}

LIFELINE_ASSUME_NONNULL_END

#endif
