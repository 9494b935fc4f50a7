// The buffer that messages are encoded into.
//
// Invariant: the bytes that are written so far are at its end, and keep their distance from it when it grows.
#include <stdlib.h>

#include "encoder.h"

// Buffers start at the first size and grow fourfold, so that a large message moves few times. From the second size on
// they double, to waste less.
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
