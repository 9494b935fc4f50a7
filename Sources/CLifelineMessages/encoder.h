// Shared by the files of the encoder.
//
// encode.c has the function that others call, encode_buffer.c the buffer. encode_fields.c goes through messages and
// writes their singular fields, and encode_repeated.c writes repeated fields.
//
// A message is written from its end to its start, so each length is written after the bytes that it counts: no second
// pass computes sizes, and nothing moves. Functions that write take `place`, the first byte written so far, and return
// the new one, in front of it; or NULL on failure. Short values are written with stores of eight bytes. The bytes that
// such a store puts in front of the value are garbage, which the next value overwrites, and need room too.
#ifndef LIFELINE_ENCODER_H
#define LIFELINE_ENCODER_H

#include "fields.h"
#include "lifeline_message.h"
#include "sizes.h"
#include "varint.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// One call of lifeline_message_encode.
typedef struct LifelineWriter {
    uint8_t *memory;  // the buffer's start, and end
    uint8_t *end;
    uint32_t depth;   // how many messages may still be nested
    LifelineEncoder *encoder;
    size_t held;      // bytes that the encoder held before this message
    LifelineFailure *failure;
} LifelineWriter;

enum {
    // Holds a varint, a tag, and the garbage in front of it.
    LIFELINE_ROOM_FOR_SCALAR = 24,
    // The longest string that is copied without a call.
    LIFELINE_SHORT_STRING = 64,
    LIFELINE_ROOM_FOR_SHORT_STRING = LIFELINE_SHORT_STRING + LIFELINE_ROOM_FOR_SCALAR,
};

_Static_assert(
    (int)LIFELINE_ROOM_FOR_SHORT_STRING == (int)LIFELINE_ENCODER_SURPLUS, "Callers rely on the documented surplus.");

static inline uint8_t *_Nullable lifeline_writer_fail(LifelineWriter *writer, LifelineStatus status) {
    writer->failure->status = status;
    return NULL;
}

// Makes room for `size` more bytes in front of `place`. Returns that place in the new buffer.
uint8_t *_Nullable lifeline_writer_grow(LifelineWriter *writer, uint8_t *place, size_t size);

static inline bool lifeline_writer_has_room(const LifelineWriter *writer, const uint8_t *place, size_t size) {
    return (size_t)(place - writer->memory) >= size;
}

// Returns `place`, or its new place after growing, with room for `size` bytes in front of it.
static inline uint8_t *_Nullable lifeline_writer_reserve(LifelineWriter *writer, uint8_t *place, size_t size) {
    return lifeline_writer_has_room(writer, place, size) ? place : lifeline_writer_grow(writer, place, size);
}

// The following functions make room by themselves, and leave some for a tag.

uint8_t *_Nullable lifeline_put_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message);

// Writes all elements of a repeated field, which has some, with their tags.
uint8_t *_Nullable lifeline_put_repeated(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *message);

// Writes a submessage after its length.
uint8_t *_Nullable lifeline_put_submessage(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value);

// Writes a submessage as a group, with its end tag and without its start tag.
uint8_t *_Nullable lifeline_put_group(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value);

// Writes any number of bytes.
static inline uint8_t *_Nullable lifeline_put_bytes(
    LifelineWriter *writer, uint8_t *place, const void *_Nullable bytes, size_t count) {
    if (count > INT32_MAX) return lifeline_writer_fail(writer, LIFELINE_TOO_LARGE);
    place = lifeline_writer_reserve(writer, place, count + LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    place -= count;
    if (count > 0) memcpy(place, bytes, count);
    return place;
}

// The following functions need room that the caller has made.

// Writes a varint of any length. Needs LIFELINE_LARGEST_VARINT bytes of room.
static inline uint8_t *lifeline_put_varint(uint8_t *place, uint64_t value) {
    if (value < 0x80) {
        *--place = (uint8_t)value;
        return place;
    }
    if (value >> 56 != 0) {
        place -= lifeline_varint_length(value);
        lifeline_write_varint(place, value);
        return place;
    }
    size_t length = lifeline_short_varint_length(value);
    uint64_t bytes = lifeline_spread_varint(value) << (64 - 8 * length);
    memcpy(place - 8, &bytes, 8);
    return place - length;
}

// Needs eight bytes of room.
static inline uint8_t *lifeline_put_tag(uint8_t *place, const LifelineField *field) {
    memcpy(place - 8, &field->encoded_tag, 8);
    return place - (uint8_t)field->encoded_tag;
}

// The tag that ends a group: it differs from that of its start in the wire type, three bits of the first byte. Needs
// eight bytes of room.
static inline uint8_t *lifeline_put_end_tag(uint8_t *place, const LifelineField *field) {
    uint64_t difference = LIFELINE_WIRE_START_GROUP ^ LIFELINE_WIRE_END_GROUP;
    size_t length = (uint8_t)field->encoded_tag;
    uint64_t tag = field->encoded_tag ^ difference << (64 - 8 * length);
    memcpy(place - 8, &tag, 8);
    return place - length;
}

// Copies at most LIFELINE_SHORT_STRING bytes without a call, as overlapping halves of the next power of two.
static inline void lifeline_copy_short(uint8_t *to, const uint8_t *_Nullable from, size_t count) {
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
        uint8_t first[8], last[8];
        memcpy(first, from, 8);
        memcpy(last, from + count - 8, 8);
        memcpy(to, first, 8);
        memcpy(to + count - 8, last, 8);
    } else if (count >= 4) {
        uint8_t first[4], last[4];
        memcpy(first, from, 4);
        memcpy(last, from + count - 4, 4);
        memcpy(to, first, 4);
        memcpy(to + count - 4, last, 4);
    } else if (count > 0) {
        to[0] = from[0];
        to[count / 2] = from[count / 2];
        to[count - 1] = from[count - 1];
    }
}

// Writes a string of at most LIFELINE_SHORT_STRING bytes after its length. Needs LIFELINE_ROOM_FOR_SHORT_STRING bytes
// of room.
static inline uint8_t *lifeline_put_short_string(uint8_t *place, ProtobufCBinaryData bytes) {
    place -= bytes.len;
    lifeline_copy_short(place, bytes.data, bytes.len);
    *--place = (uint8_t)bytes.len;
    return place;
}

// All types of numbers, as DO(type, name). Types with the same encoding share the name of one of them.
#define LIFELINE_FOR_EACH_NUMBER_TYPE(DO)                                                 \
    DO(BOOL, BOOL) DO(UINT32, UINT32) DO(INT32, INT32) DO(ENUM, INT32) DO(SINT32, SINT32) \
    DO(SINT64, SINT64) DO(INT64, UINT64) DO(UINT64, UINT64)                               \
    DO(FIXED32, FIXED32) DO(SFIXED32, FIXED32) DO(FLOAT, FIXED32)                         \
    DO(FIXED64, FIXED64) DO(SFIXED64, FIXED64) DO(DOUBLE, FIXED64)

// A number in a struct, as it goes onto the wire.
LIFELINE_ALWAYS_INLINE uint64_t lifeline_load_number(int type, const uint8_t *value) {
    uint64_t bits = lifeline_load_scalar(value, lifeline_type_size(type));
    switch (type) {
        case LIFELINE_TYPE_BOOL:
            return bits != 0;
        case LIFELINE_TYPE_INT32:
            return (uint64_t)(int64_t)(int32_t)bits;  // negative numbers take ten bytes
        case LIFELINE_TYPE_SINT32:
            return lifeline_zigzag32((int32_t)bits);
        case LIFELINE_TYPE_SINT64:
            return lifeline_zigzag64((int64_t)bits);
        default:
            return bits;
    }
}

// Needs LIFELINE_ROOM_FOR_SCALAR bytes of room.
LIFELINE_ALWAYS_INLINE uint8_t *lifeline_put_number(uint8_t *place, int type, uint64_t number) {
    uint32_t low = (uint32_t)number;
    switch (type) {
        case LIFELINE_TYPE_FIXED32:
            memcpy(place - 4, &low, 4);
            return place - 4;
        case LIFELINE_TYPE_FIXED64:
            memcpy(place - 8, &number, 8);
            return place - 8;
        default:
            return lifeline_put_varint(place, number);
    }
}

LIFELINE_ASSUME_NONNULL_END

#endif
