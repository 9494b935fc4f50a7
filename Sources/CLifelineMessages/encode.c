// Encoding: the buffer, and what goes into it whole.
//
// Invariant: the bytes that the encoder held before the call stay as they are; a failure takes back what was written.
#include <stdlib.h>

#include "encoder.h"

// Buffers grow from here on fourfold, so that a large message is moved few times, up to where that wastes too much.
static const size_t smallest_capacity = 4096;
static const size_t largest_fourfold_capacity = (size_t)1 << 20;

void lifeline_encoder_destroy(LifelineEncoder *encoder) {
    if (encoder->owns_memory) free(encoder->memory);
    lifeline_encoder_init(encoder, NULL, 0, false);
}

static size_t grown_capacity(size_t capacity, size_t needed) {
    size_t factor = capacity < largest_fourfold_capacity ? 4 : 2;
    size_t grown = capacity > lifeline_largest_size / factor ? lifeline_largest_size : capacity * factor;
    if (grown < needed) grown = needed;
    return grown < smallest_capacity ? smallest_capacity : grown;
}

uint8_t *lifeline_writer_grow(LifelineWriter *writer, uint8_t *place, size_t size) {
    LifelineEncoder *encoder = writer->encoder;
    size_t used = (size_t)(writer->end - place);
    if (size > lifeline_largest_size / 2 || used - writer->held > INT32_MAX) {
        return lifeline_writer_fail(writer, LIFELINE_TOO_LARGE);
    }
    if (!encoder->can_grow) return lifeline_writer_fail(writer, LIFELINE_NO_ROOM);
    if (used > lifeline_largest_size / 2) return lifeline_writer_fail(writer, LIFELINE_OUT_OF_MEMORY);
    size_t capacity = grown_capacity(encoder->capacity, used + size);
    uint8_t *memory = malloc(capacity);
    if (memory == NULL) return lifeline_writer_fail(writer, LIFELINE_OUT_OF_MEMORY);
    if (used > 0) memcpy(memory + capacity - used, place, used);
    if (encoder->owns_memory) free(encoder->memory);
    encoder->memory = memory;
    encoder->capacity = capacity;
    encoder->owns_memory = true;
    writer->memory = memory;
    writer->end = memory + capacity;
    return writer->end - used;
}

uint8_t *lifeline_put_bytes(LifelineWriter *writer, uint8_t *place, const void *bytes, size_t count) {
    if (count > INT32_MAX) return lifeline_writer_fail(writer, LIFELINE_TOO_LARGE);
    place = lifeline_writer_reserve(writer, place, count + LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    place -= count;
    if (count > 0) memcpy(place, bytes, count);
    return place;
}

uint8_t *lifeline_put_unknown_fields(LifelineWriter *writer, uint8_t *place, const ProtobufCMessage *message) {
    for (unsigned index = message->n_unknown_fields; index > 0; index -= 1) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[index - 1];
        place = lifeline_put_bytes(writer, place, field->data, field->len);
        if (place == NULL) return NULL;
        place = lifeline_put_varint(place, (uint64_t)field->tag << 3 | (uint64_t)field->wire_type);
    }
    return place;
}

// The message, and its length where it is asked for.
static uint8_t *_Nullable put_root(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message, bool delimited) {
    place = lifeline_put_message(writer, place, table, message);
    if (place == NULL) return NULL;
    size_t size = (size_t)(writer->end - place) - writer->held;
    if (size > INT32_MAX) return lifeline_writer_fail(writer, LIFELINE_TOO_LARGE);
    if (!delimited) return place;
    place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
    return place == NULL ? NULL : lifeline_put_varint(place, size);
}

bool lifeline_message_encode(
    const LifelineMessageTable *table, const void *message, bool delimited, uint32_t maximum_depth,
    LifelineEncoder *encoder, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    size_t held = encoder->capacity - encoder->start;
    LifelineWriter writer = {
        .memory = encoder->memory,
        .end = encoder->memory + encoder->capacity,
        .depth = maximum_depth,
        .encoder = encoder,
        .held = held,
        .failure = failure,
    };
    uint8_t *place = put_root(&writer, writer.end - held, table, message, delimited);
    if (place == NULL && failure->message == NULL) failure->message = table;
    encoder->start = place == NULL ? encoder->capacity - held : (size_t)(place - writer.memory);
    return place != NULL;
}
