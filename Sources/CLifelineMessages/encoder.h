// What the encoder's files share.
//
// encode.c has the buffer, encode_fields.c goes through messages and writes fields that are there at most once, and
// encode_repeated.c repeated ones.
//
// A message is written from its end to its start: a length is written when what it measures has been, so there is no
// second pass to compute sizes and nothing to move. Functions that write take `place`, the first byte that is written
// so far, and return the new one, in front of it; or NULL on failure. Short values are written with stores of eight
// bytes, of which those in front of the value are garbage that the next value overwrites: hence the room that they
// need.
#ifndef LIFELINE_ENCODER_H
#define LIFELINE_ENCODER_H

#include "fields.h"
#include "lifeline_message.h"
#include "sizes.h"
#include "varint.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Inlined for each type, so that what is done to a value is known where it is done.
#define LIFELINE_ALWAYS_INLINE static inline __attribute__((always_inline))

// One call of lifeline_message_encode.
typedef struct LifelineWriter {
    uint8_t *memory;  // the buffer's start, and end
    uint8_t *end;
    uint32_t depth;   // how many messages may still stand inside each other
    LifelineEncoder *encoder;
    size_t held;      // bytes in the encoder that are not of this message
    LifelineFailure *failure;
} LifelineWriter;

enum {
    // Holds a varint, a tag, and the garbage in front of it.
    LIFELINE_ROOM_FOR_SCALAR = 24,
    // The longest string that is copied without a call.
    LIFELINE_SHORT_STRING = 64,
    LIFELINE_ROOM_FOR_SHORT_STRING = LIFELINE_SHORT_STRING + LIFELINE_ROOM_FOR_SCALAR,
};

_Static_assert((int)LIFELINE_ROOM_FOR_SHORT_STRING == (int)LIFELINE_ENCODER_SURPLUS, "That is what callers are told.");

static inline uint8_t *_Nullable lifeline_writer_fail(LifelineWriter *writer, LifelineStatus status) {
    writer->failure->status = status;
    return NULL;
}

// Makes room for `size` more bytes in front of `place`; returns where that is in the new buffer.
uint8_t *_Nullable lifeline_writer_grow(LifelineWriter *writer, uint8_t *place, size_t size);

static inline bool lifeline_writer_has_room(const LifelineWriter *writer, const uint8_t *place, size_t size) {
    return (size_t)(place - writer->memory) >= size;
}

// `place`, or where it has moved to, with room for `size` bytes in front of it.
static inline uint8_t *_Nullable lifeline_writer_reserve(LifelineWriter *writer, uint8_t *place, size_t size) {
    return lifeline_writer_has_room(writer, place, size) ? place : lifeline_writer_grow(writer, place, size);
}

// These make room by themselves, and leave some for a tag.

uint8_t *_Nullable lifeline_put_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message);

// All elements of a repeated field that has some, with their tags.
uint8_t *_Nullable lifeline_put_repeated(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *message);

// A submessage behind its length.
uint8_t *_Nullable lifeline_put_submessage(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value);

uint8_t *_Nullable lifeline_put_unknown_fields(
    LifelineWriter *writer, uint8_t *place, const ProtobufCMessage *message);

// Bytes of any number.
uint8_t *_Nullable lifeline_put_bytes(
    LifelineWriter *writer, uint8_t *place, const void *_Nullable bytes, size_t count);

// What follows needs room that is there.

// A varint of any length. Needs LIFELINE_LARGEST_VARINT bytes of room.
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

// At most LIFELINE_SHORT_STRING bytes, without a call: in overlapping halves of the next power of two.
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

// A string of at most LIFELINE_SHORT_STRING bytes behind its length. Needs LIFELINE_ROOM_FOR_SHORT_STRING bytes of
// room.
static inline uint8_t *lifeline_put_short_string(uint8_t *place, ProtobufCBinaryData bytes) {
    place -= bytes.len;
    lifeline_copy_short(place, bytes.data, bytes.len);
    *--place = (uint8_t)bytes.len;
    return place;
}

// How numbers are written: types that are written alike have the name of one of them. DO(type, name).
#define LIFELINE_FOR_EACH_NUMBER_TYPE(DO)                                                 \
    DO(BOOL, BOOL) DO(UINT32, UINT32) DO(INT32, INT32) DO(ENUM, INT32) DO(SINT32, SINT32) \
    DO(SINT64, SINT64) DO(INT64, UINT64) DO(UINT64, UINT64)                               \
    DO(FIXED32, FIXED32) DO(SFIXED32, FIXED32) DO(FLOAT, FIXED32)                         \
    DO(FIXED64, FIXED64) DO(SFIXED64, FIXED64) DO(DOUBLE, FIXED64)

// What such a number takes in a struct.
LIFELINE_ALWAYS_INLINE size_t lifeline_number_size(int type) {
    switch (type) {
        case LIFELINE_TYPE_BOOL:
            return sizeof(protobuf_c_boolean);
        case LIFELINE_TYPE_UINT32:
        case LIFELINE_TYPE_INT32:
        case LIFELINE_TYPE_SINT32:
        case LIFELINE_TYPE_FIXED32:
            return 4;
        default:
            return 8;
    }
}

// A number in a struct as it goes onto the wire: zero when it is zero.
LIFELINE_ALWAYS_INLINE uint64_t lifeline_load_number(int type, const uint8_t *value) {
    uint64_t bits = lifeline_load_scalar(value, lifeline_number_size(type));
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
