// Encoding, from the end to the start: a length is written when what it measures has been, so there is no second pass
// to compute sizes and nothing to move.
//
// Functions that write take `place`, the first byte that is written so far, and return the new one, in front of it; or
// NULL on failure. Short values are written with stores of eight bytes, of which the ones in front of the value are
// garbage that the next value overwrites: hence the room that is reserved before.
//
// Invariant: the bytes that the encoder held before the call stay as they are; a failure takes back what was written.
#include <stdlib.h>

#include "fields.h"
#include "lifeline_message.h"
#include "sizes.h"
#include "varint.h"

// One call of lifeline_message_encode.
typedef struct Writer {
    uint8_t *memory;  // the buffer's start, and end
    uint8_t *end;
    LifelineEncoder *encoder;
    size_t held;  // bytes in the encoder that are not of this message
    LifelineFailure *failure;
} Writer;

// Holds a tag and a varint, or a varint and the garbage in front of it.
static const size_t room_for_scalar = 24;

// Room for a short string and its tag, so that most fields ask once.
static const size_t short_length = 64;

// Buffers grow from here on fourfold, so that a large message is moved few times, up to where that wastes too much.
static const size_t smallest_capacity = 4096;
static const size_t largest_fourfold_capacity = (size_t)1 << 20;

void lifeline_encoder_init(LifelineEncoder *encoder, void *memory, size_t capacity, bool can_grow) {
    static uint8_t nothing;  // so that there is always a pointer to count from
    if (memory == NULL) memory = &nothing;
    *encoder = (LifelineEncoder){.memory = memory, .capacity = capacity, .start = capacity, .can_grow = can_grow};
}

void lifeline_encoder_destroy(LifelineEncoder *encoder) {
    if (encoder->owns_memory) free(encoder->memory);
    lifeline_encoder_init(encoder, NULL, 0, false);
}

static uint8_t *_Nullable fail(Writer *writer, LifelineStatus status) {
    writer->failure->status = status;
    return NULL;
}

static size_t grown_capacity(size_t capacity, size_t needed) {
    size_t factor = capacity < largest_fourfold_capacity ? 4 : 2;
    size_t grown = capacity > lifeline_largest_size / factor ? lifeline_largest_size : capacity * factor;
    if (grown < needed) grown = needed;
    return grown < smallest_capacity ? smallest_capacity : grown;
}

// Makes room for `size` more bytes in front of `place`; returns where that is in the new buffer.
static __attribute__((noinline)) uint8_t *_Nullable grow(Writer *writer, uint8_t *place, size_t size) {
    LifelineEncoder *encoder = writer->encoder;
    size_t used = (size_t)(writer->end - place);
    if (size > INT32_MAX || used - writer->held > INT32_MAX) return fail(writer, LIFELINE_TOO_LARGE);
    if (!encoder->can_grow) return fail(writer, LIFELINE_NO_ROOM);
    if (used > lifeline_largest_size - size) return fail(writer, LIFELINE_OUT_OF_MEMORY);
    size_t capacity = grown_capacity(encoder->capacity, used + size);
    uint8_t *memory = malloc(capacity);
    if (memory == NULL) return fail(writer, LIFELINE_OUT_OF_MEMORY);
    if (used > 0) memcpy(memory + capacity - used, place, used);
    if (encoder->owns_memory) free(encoder->memory);
    encoder->memory = memory;
    encoder->capacity = capacity;
    encoder->owns_memory = true;
    writer->memory = memory;
    writer->end = memory + capacity;
    return writer->end - used;
}

// `place`, or where it has moved to, with room for `size` bytes in front of it.
static inline uint8_t *_Nullable reserve(Writer *writer, uint8_t *place, size_t size) {
    return (size_t)(place - writer->memory) >= size ? place : grow(writer, place, size);
}

// MARK: Parts of fields, into room that is reserved

static uint8_t *put_longest_varint(uint8_t *place, uint64_t value) {
    place -= lifeline_varint_length(value);
    lifeline_write_varint(place, value);
    return place;
}

// Needs room for LIFELINE_LARGEST_VARINT bytes.
static inline uint8_t *put_varint(uint8_t *place, uint64_t value) {
    if (value < 0x80) {
        *--place = (uint8_t)value;
        return place;
    }
    if (value >> 56 != 0) return put_longest_varint(place, value);
    size_t length = lifeline_short_varint_length(value);
    uint64_t bytes = lifeline_spread_varint(value) << (64 - 8 * length);
    memcpy(place - 8, &bytes, 8);
    return place - length;
}

// Needs room for eight bytes.
static inline uint8_t *put_tag(uint8_t *place, const LifelineField *field) {
    memcpy(place - 8, &field->encoded_tag, 8);
    return place - (uint8_t)field->encoded_tag;
}

// Up to 64 bytes, without a call: in two overlapping halves of the next smaller power of two.
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t count) {
    if (count >= 16) {
        uint8_t first[16], last[16];
        memcpy(first, from, 16);
        memcpy(last, from + count - 16, 16);
        if (count > 32) {
            uint8_t second[16], last_but_one[16];
            memcpy(second, from + 16, 16);
            memcpy(last_but_one, from + count - 32, 16);
            memcpy(to + 16, second, 16);
            memcpy(to + count - 32, last_but_one, 16);
        }
        memcpy(to, first, 16);
        memcpy(to + count - 16, last, 16);
    } else if (count >= 8) {
        memcpy(to, from, 8);
        memcpy(to + count - 8, from + count - 8, 8);
    } else if (count >= 4) {
        memcpy(to, from, 4);
        memcpy(to + count - 4, from + count - 4, 4);
    } else if (count > 0) {
        to[0] = from[0];
        to[count / 2] = from[count / 2];
        to[count - 1] = from[count - 1];
    }
}

// MARK: Values

static inline uint8_t *_Nullable put_bytes(Writer *writer, uint8_t *place, const void *_Nullable bytes, size_t count) {
    if (count <= short_length) {
        place = reserve(writer, place, short_length);
        if (place == NULL) return NULL;
        place -= count;
        copy_short(place, bytes, count);
        return place;
    }
    place = reserve(writer, place, count);
    if (place == NULL) return NULL;
    place -= count;
    memcpy(place, bytes, count);
    return place;
}

// Bytes behind their length.
static inline uint8_t *_Nullable put_string(Writer *writer, uint8_t *place, const void *value) {
    ProtobufCBinaryData bytes = lifeline_load_bytes(value);
    place = put_bytes(writer, place, bytes.data, bytes.len);
    if (place != NULL) place = reserve(writer, place, room_for_scalar);
    return place == NULL ? NULL : put_varint(place, bytes.len);
}

static uint8_t *_Nullable put_message(
    Writer *writer, uint8_t *place, const LifelineMessageTable *table, const void *message, uint32_t depth);

// A submessage behind its length, below one that has `depth` levels left.
static inline uint8_t *_Nullable put_submessage(
    Writer *writer, uint8_t *place, const LifelineField *field, const void *value, uint32_t depth) {
    if (depth == 0) return fail(writer, LIFELINE_TOO_DEEP);
    size_t before = (size_t)(writer->end - place);  // counted from the end, which growing does not change
    place = put_message(writer, place, field->message, lifeline_load_message(field, value), depth - 1);
    if (place != NULL) place = reserve(writer, place, room_for_scalar);
    return place == NULL ? NULL : put_varint(place, (size_t)(writer->end - place) - before);
}

// The bits that the struct holds as a varint's value.
static inline uint64_t to_wire(uint8_t type, const void *value) {
    switch (type) {
        case LIFELINE_TYPE_BOOL:
            return lifeline_load32(value) != 0;
        case LIFELINE_TYPE_UINT32:
            return lifeline_load32(value);
        case LIFELINE_TYPE_INT32:
        case LIFELINE_TYPE_ENUM:
            return (uint64_t)(int64_t)(int32_t)lifeline_load32(value);  // negative numbers take ten bytes
        case LIFELINE_TYPE_SINT32:
            return lifeline_zigzag32((int32_t)lifeline_load32(value));
        case LIFELINE_TYPE_SINT64:
            return lifeline_zigzag64((int64_t)lifeline_load_scalar(value, 8));
        default:
            return lifeline_load_scalar(value, 8);
    }
}

// One value without its tag; there is room left for that.
static inline uint8_t *_Nullable put_value(
    Writer *writer, uint8_t *place, const LifelineField *field, const void *value, uint32_t depth) {
    switch (field->type) {
        case LIFELINE_TYPE_MESSAGE:
            return put_submessage(writer, place, field, value, depth);
        case LIFELINE_TYPE_STRING:
        case LIFELINE_TYPE_BYTES:
            return put_string(writer, place, value);
        default:
            break;
    }
    place = reserve(writer, place, room_for_scalar);
    if (place == NULL) return NULL;
    switch (field->type) {
        case LIFELINE_TYPE_FLOAT:
        case LIFELINE_TYPE_FIXED32:
        case LIFELINE_TYPE_SFIXED32:
            memcpy(place - 4, value, 4);
            return place - 4;
        case LIFELINE_TYPE_DOUBLE:
        case LIFELINE_TYPE_FIXED64:
        case LIFELINE_TYPE_SFIXED64:
            memcpy(place - 8, value, 8);
            return place - 8;
        default:
            return put_varint(place, to_wire(field->type, value));
    }
}

// MARK: Fields

static uint8_t *_Nullable put_packed(
    Writer *writer, uint8_t *place, const LifelineField *field, const uint8_t *elements, size_t count) {
    size_t size = lifeline_value_size(field);
    size_t before = (size_t)(writer->end - place);
    if (lifeline_wire_type(field) != LIFELINE_WIRE_VARINT) {
        place = put_bytes(writer, place, elements, count * size);
    } else {
        for (size_t index = count; place != NULL && index > 0; index -= 1) {
            place = put_value(writer, place, field, elements + (index - 1) * size, 0);
        }
    }
    if (place != NULL) place = reserve(writer, place, room_for_scalar);
    if (place == NULL) return NULL;
    return put_tag(put_varint(place, (size_t)(writer->end - place) - before), field);
}

static __attribute__((noinline)) uint8_t *_Nullable put_repeated(
    Writer *writer, uint8_t *place, const LifelineField *field, const void *message, uint32_t depth) {
    size_t count = lifeline_count(field, message);
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, field->offset));
    if ((field->flags & LIFELINE_FIELD_PACKED) != 0) return put_packed(writer, place, field, elements, count);
    size_t size = lifeline_value_size(field);
    for (size_t index = count; index > 0; index -= 1) {
        place = put_value(writer, place, field, elements + (index - 1) * size, depth);
        if (place == NULL) return NULL;
        place = put_tag(place, field);
    }
    return place;
}

static uint8_t *_Nullable put_unknown_fields(Writer *writer, uint8_t *place, const ProtobufCMessage *message) {
    for (unsigned index = message->n_unknown_fields; index > 0; index -= 1) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[index - 1];
        place = put_bytes(writer, place, field->data, field->len);
        if (place != NULL) place = reserve(writer, place, room_for_scalar);
        if (place == NULL) return NULL;
        place = put_varint(place, (uint64_t)field->tag << 3 | (uint64_t)field->wire_type);
    }
    return place;
}

static uint8_t *_Nullable fail_in(Writer *writer, const LifelineMessageTable *table, uint32_t field_number) {
    if (writer->failure->message != NULL) return NULL;  // a message inside this one has said where
    writer->failure->field_number = field_number;
    writer->failure->message = table;
    return NULL;
}

// fields[first..<end]
static inline uint8_t *_Nullable put_fields(
    Writer *writer, uint8_t *place, const LifelineMessageTable *table, const void *message, uint32_t first,
    uint32_t end, uint32_t depth) {
    for (uint32_t index = end; index > first; index -= 1) {
        const LifelineField *field = &table->fields[index - 1];
        if (!lifeline_is_present(field, message)) continue;
        if (lifeline_is_repeated(field)) {
            place = put_repeated(writer, place, field, message, depth);
            if (place == NULL) return fail_in(writer, table, field->number);
        } else {
            place = put_value(writer, place, field, lifeline_at(message, field->offset), depth);
            if (place == NULL) return fail_in(writer, table, field->number);
            place = put_tag(place, field);
        }
    }
    return place;
}

static uint8_t *_Nullable put_message(
    Writer *writer, uint8_t *place, const LifelineMessageTable *table, const void *message, uint32_t depth) {
    if (((const ProtobufCMessage *)message)->n_unknown_fields > 0) {
        place = put_unknown_fields(writer, place, message);
        if (place == NULL) return fail_in(writer, table, 0);
    }
    if (table->groups == NULL) return put_fields(writer, place, table, message, 0, table->field_count, depth);
    uint32_t end = table->field_count;
    for (uint32_t index = table->group_count; place != NULL && index > 0; index -= 1) {
        const LifelineFieldGroup *group = &table->groups[index - 1];
        if (!lifeline_is_zero(lifeline_at(message, group->offset), group->size)) {
            place = put_fields(writer, place, table, message, group->first_field, end, depth);
        }
        end = group->first_field;
    }
    return place;
}

bool lifeline_message_encode(
    const LifelineMessageTable *table, const void *message, bool delimited, uint32_t maximum_depth,
    LifelineEncoder *encoder, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    size_t held = encoder->capacity - encoder->start;
    Writer writer = {
        .memory = encoder->memory,
        .end = encoder->memory + encoder->capacity,
        .encoder = encoder,
        .held = held,
        .failure = failure,
    };
    uint8_t *place = put_message(&writer, writer.end - held, table, message, maximum_depth);
    size_t size = place == NULL ? 0 : (size_t)(writer.end - place) - held;
    if (place != NULL && size > INT32_MAX) place = fail(&writer, LIFELINE_TOO_LARGE);
    if (place != NULL && delimited) {
        place = reserve(&writer, place, room_for_scalar);
        if (place != NULL) place = put_varint(place, size);
    }
    if (place == NULL) fail_in(&writer, table, 0);
    encoder->start = place == NULL ? encoder->capacity - held : (size_t)(place - writer.memory);
    return place != NULL;
}
