// Reads the fields of a struct that a table describes: how large a value is, whether a field is present, what it holds.
//
// Only this file defines sizes and presence, for both C and Swift. Values are loaded with memcpy, which compilers turn
// into a single load: the real types of the structs are not known here, so no other access is allowed.
#ifndef LIFELINE_FIELDS_H
#define LIFELINE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_base.h"
#include "lifeline_table.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// MARK: Sizes

// The bytes that one value of a LIFELINE_TYPE takes in a struct, or as an element of a repeated field.
static inline size_t lifeline_type_size(int type) {
    static const uint8_t sizes[] = {
        [LIFELINE_TYPE_DOUBLE] = 8,
        [LIFELINE_TYPE_FLOAT] = 4,
        [LIFELINE_TYPE_INT64] = 8,
        [LIFELINE_TYPE_UINT64] = 8,
        [LIFELINE_TYPE_INT32] = 4,
        [LIFELINE_TYPE_FIXED64] = 8,
        [LIFELINE_TYPE_FIXED32] = 4,
        [LIFELINE_TYPE_BOOL] = 4,      // protobuf_c_boolean
        [LIFELINE_TYPE_STRING] = 16,   // ProtobufCBinaryData: a length and a pointer
        [LIFELINE_TYPE_MESSAGE] = 8,   // a pointer
        [LIFELINE_TYPE_BYTES] = 16,
        [LIFELINE_TYPE_UINT32] = 4,
        [LIFELINE_TYPE_ENUM] = 4,
        [LIFELINE_TYPE_SFIXED32] = 4,
        [LIFELINE_TYPE_SFIXED64] = 8,
        [LIFELINE_TYPE_SINT32] = 4,
        [LIFELINE_TYPE_SINT64] = 8,
    };
    return sizes[type];
}

static inline size_t lifeline_value_size(const LifelineField *field) {
    return lifeline_type_size(field->type);
}

// MARK: Values

static inline const uint8_t *lifeline_at(const void *message, uint32_t offset) {
    return (const uint8_t *)message + offset;
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

static inline void *_Nullable lifeline_load_pointer(const void *value) {
    void *pointer;
    memcpy(&pointer, value, sizeof pointer);
    return pointer;
}

// MARK: Presence

static inline bool lifeline_is_bytes_type(int type) {
    return type == LIFELINE_TYPE_STRING || type == LIFELINE_TYPE_BYTES;
}

static inline bool lifeline_is_bytes(const LifelineField *field) {
    return lifeline_is_bytes_type(field->type);
}

static inline bool lifeline_is_repeated(const LifelineField *field) {
    return field->presence == LIFELINE_PRESENCE_REPEATED || field->presence == LIFELINE_PRESENCE_MAP;
}

// The number of elements of a repeated or map field.
static inline size_t lifeline_count(const LifelineField *field, const void *message) {
    return lifeline_load_scalar(lifeline_at(message, field->quantifier_offset), sizeof(size_t));
}

// Whether a field of a known kind of presence is present. `type` is a type that is stored as the field's; or 0, to look
// the field's own up where it matters.
LIFELINE_ALWAYS_INLINE bool lifeline_is_present_as(
    int presence, int type, const LifelineField *field, const void *message) {
    const uint8_t *value = lifeline_at(message, field->offset);
    switch (presence) {
        case LIFELINE_PRESENCE_IMPLICIT:
            if (type == 0) type = field->type;
            if (lifeline_is_bytes_type(type)) return lifeline_load_scalar(value, sizeof(size_t)) != 0;  // its length
            return lifeline_load_scalar(value, lifeline_type_size(type)) != 0;  // by its bits: -0.0 is present
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

static inline bool lifeline_is_present(const LifelineField *field, const void *message) {
    return lifeline_is_present_as(field->presence, 0, field, message);
}

// Makes a singular field present, whose value is then stored. Where another member of its oneof was present, the value
// becomes zero: it is in the same place.
static inline void lifeline_make_present(const LifelineField *field, void *message) {
    bool is_in_oneof = field->presence == LIFELINE_PRESENCE_ONEOF;
    if (!is_in_oneof && field->presence != LIFELINE_PRESENCE_FLAG) return;
    if (is_in_oneof && !lifeline_is_present(field, message)) {
        memset((uint8_t *)message + field->offset, 0, lifeline_value_size(field));
    }
    uint32_t mark = is_in_oneof ? field->number : 1;
    memcpy((uint8_t *)message + field->quantifier_offset, &mark, sizeof mark);
}

// MARK: Finding

// The field with this number, or NULL.
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

// The position of `number` in the ascending list that the enum declares, or its count when it is not in there.
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
