// Encodes a message: the function that others call.
//
// Invariant: the bytes that the encoder held before the call stay as they are, and a failure removes what was written.
#include "encoder.h"

// Writes the message, with its length in front when `delimited`.
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
