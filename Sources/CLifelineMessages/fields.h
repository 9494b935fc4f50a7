// Writes the fields of a struct that a table describes. See lifeline_fields.h for reading.
#ifndef LIFELINE_FIELDS_INLINE_H
#define LIFELINE_FIELDS_INLINE_H

#include <protobuf-c/protobuf-c.h>

#include "lifeline_fields.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Fixed-size numbers are copied between memory and the wire, so memory must be little-endian."
#endif

_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "Structs and arenas are laid out for 64-bit processors.");

// lifeline_fields.h says the same without protobuf-c's header, for which Swift has another module.
_Static_assert(sizeof(protobuf_c_boolean) == 4, "lifeline_type_size says so.");
_Static_assert(sizeof(ProtobufCBinaryData) == 16, "lifeline_type_size says so.");
_Static_assert(offsetof(ProtobufCBinaryData, len) == 0, "lifeline_is_present reads the length there.");

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
    if ((field->flags & LIFELINE_FIELD_GROUP) != 0) return LIFELINE_WIRE_START_GROUP;
    return wire_types[field->type];
}

static inline void *lifeline_mutable_at(void *message, uint32_t offset) {
    return (uint8_t *)message + offset;
}

// Of 4 or 8 bytes.
static inline void lifeline_store_scalar(void *value, size_t size, uint64_t bits) {
    if (size == 4) {
        memcpy(value, &bits, 4);
    } else {
        memcpy(value, &bits, 8);
    }
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

static inline void lifeline_store_pointer(void *value, void *_Nullable pointer) {
    memcpy(value, &pointer, sizeof pointer);
}

// The submessage at `value`, for reading; the default instance if there is none.
static inline const void *lifeline_load_message(const LifelineField *field, const void *value) {
    const void *message = lifeline_load_pointer(value);
    return message == NULL ? field->message->default_instance : message;
}

// The values of a field that is present: the elements of a repeated field, else the only one.
static inline const uint8_t *lifeline_values(const LifelineField *field, const void *message, size_t *count) {
    const uint8_t *value = lifeline_at(message, field->offset);
    bool is_repeated = lifeline_is_repeated(field);
    *count = is_repeated ? lifeline_count(field, message) : 1;
    return is_repeated ? lifeline_load_pointer(value) : value;
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

// Records that a singular field's value was stored.
static inline void lifeline_mark_present(const LifelineField *field, void *message) {
    uint32_t mark = field->presence == LIFELINE_PRESENCE_ONEOF ? field->number : 1;
    if (field->presence == LIFELINE_PRESENCE_ONEOF || field->presence == LIFELINE_PRESENCE_FLAG) {
        memcpy(lifeline_mutable_at(message, field->quantifier_offset), &mark, sizeof mark);
    }
}

LIFELINE_ASSUME_NONNULL_END

#endif
