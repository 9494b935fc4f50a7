// Encoding, from the end to the start: a length is written when what it measures has been, so there is no second pass
// to compute sizes and nothing to move.
//
// Invariant: the bytes that the encoder held before the call stay as they are; a failure takes back what was written.
#include <stdlib.h>

#include "fields.h"
#include "lifeline_message.h"
#include "sizes.h"
#include "varint.h"

// One call of lifeline_message_encode.
typedef struct Writer {
    LifelineEncoder *encoder;
    size_t held;  // bytes in the encoder that are not of this message
    LifelineFailure *failure;
} Writer;

// What most messages of a chat or a sensor fit in.
static const size_t smallest_capacity = 512;

void lifeline_encoder_init(LifelineEncoder *encoder) {
    *encoder = (LifelineEncoder){.memory = NULL};
}

void lifeline_encoder_destroy(LifelineEncoder *encoder) {
    free(encoder->memory);
    lifeline_encoder_init(encoder);
}

static bool fail(Writer *writer, LifelineStatus status) {
    writer->failure->status = status;
    return false;
}

static size_t bytes_held(const LifelineEncoder *encoder) {
    return encoder->capacity - encoder->start;
}

// Makes room for `size` more bytes in front of those that are there.
static bool grow(Writer *writer, size_t size) {
    LifelineEncoder *encoder = writer->encoder;
    size_t used = bytes_held(encoder);
    if (size > INT32_MAX || used - writer->held > INT32_MAX - size) return fail(writer, LIFELINE_TOO_LARGE);
    if (used > lifeline_largest_size - size) return fail(writer, LIFELINE_OUT_OF_MEMORY);
    size_t capacity = encoder->capacity > lifeline_largest_size / 2 ? lifeline_largest_size : encoder->capacity * 2;
    if (capacity < used + size) capacity = used + size;
    if (capacity < smallest_capacity) capacity = smallest_capacity;
    uint8_t *memory = malloc(capacity);
    if (memory == NULL) return fail(writer, LIFELINE_OUT_OF_MEMORY);
    if (used > 0) memcpy(memory + capacity - used, encoder->memory + encoder->start, used);
    free(encoder->memory);
    *encoder = (LifelineEncoder){.memory = memory, .capacity = capacity, .start = capacity - used};
    return true;
}

// The place for `size` more bytes in front of those that are there; NULL on failure.
static uint8_t *_Nullable take(Writer *writer, size_t size) {
    if (writer->encoder->start < size && !grow(writer, size)) return NULL;
    writer->encoder->start -= size;
    return writer->encoder->memory + writer->encoder->start;
}

static bool put_bytes(Writer *writer, const void *_Nullable bytes, size_t size) {
    if (size == 0) return true;
    uint8_t *place = take(writer, size);
    if (place == NULL) return false;
    memcpy(place, bytes, size);
    return true;
}

static bool put_varint(Writer *writer, uint64_t value) {
    uint8_t *place = take(writer, lifeline_varint_length(value));
    if (place == NULL) return false;
    lifeline_write_varint(place, value);
    return true;
}

static bool put_tag(Writer *writer, uint32_t number, uint32_t wire_type) {
    return put_varint(writer, (uint64_t)number << 3 | wire_type);
}

// The bits that the struct holds as a varint's value.
static uint64_t to_wire(const LifelineField *field, uint64_t bits) {
    switch (field->type) {
        case LIFELINE_TYPE_BOOL:
            return bits != 0;
        case LIFELINE_TYPE_INT32:
        case LIFELINE_TYPE_ENUM:
            return (uint64_t)(int64_t)(int32_t)bits;  // negative numbers take ten bytes
        case LIFELINE_TYPE_SINT32:
            return ((uint32_t)bits << 1) ^ (0 - ((uint32_t)bits >> 31));
        case LIFELINE_TYPE_SINT64:
            return (bits << 1) ^ (0 - (bits >> 63));
        default:
            return bits;
    }
}

static bool put_message(
    Writer *writer, const LifelineMessageTable *table, const void *message, uint32_t depth);

// A submessage with its length, below one that has `depth` levels left.
static bool put_submessage(Writer *writer, const LifelineField *field, const void *value, uint32_t depth) {
    if (depth == 0) return fail(writer, LIFELINE_TOO_DEEP);
    size_t before = bytes_held(writer->encoder);
    if (!put_message(writer, field->message, lifeline_load_message(field, value), depth - 1)) return false;
    return put_varint(writer, bytes_held(writer->encoder) - before);
}

// One value without its tag.
static bool put_value(Writer *writer, const LifelineField *field, const void *value, uint32_t depth) {
    if (field->type == LIFELINE_TYPE_MESSAGE) return put_submessage(writer, field, value, depth);
    if (lifeline_is_bytes(field)) {
        ProtobufCBinaryData bytes = lifeline_load_bytes(value);
        return put_bytes(writer, bytes.data, bytes.len) && put_varint(writer, bytes.len);
    }
    size_t size = lifeline_value_size(field);
    if (lifeline_wire_type(field) != LIFELINE_WIRE_VARINT) return put_bytes(writer, value, size);
    return put_varint(writer, to_wire(field, lifeline_load_scalar(value, size)));
}

static bool put_packed(Writer *writer, const LifelineField *field, const uint8_t *elements, size_t count) {
    size_t size = lifeline_value_size(field);
    size_t before = bytes_held(writer->encoder);
    if (lifeline_wire_type(field) != LIFELINE_WIRE_VARINT) {
        if (!put_bytes(writer, elements, count * size)) return false;
    } else {
        for (size_t index = count; index > 0; index -= 1) {
            if (!put_value(writer, field, elements + (index - 1) * size, 0)) return false;
        }
    }
    return put_varint(writer, bytes_held(writer->encoder) - before)
           && put_tag(writer, field->number, LIFELINE_WIRE_LENGTH_DELIMITED);
}

static bool put_repeated(Writer *writer, const LifelineField *field, const void *message, uint32_t depth) {
    size_t count = lifeline_count(field, message);
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, field->offset));
    if ((field->flags & LIFELINE_FIELD_PACKED) != 0) return put_packed(writer, field, elements, count);
    size_t size = lifeline_value_size(field);
    for (size_t index = count; index > 0; index -= 1) {
        if (!put_value(writer, field, elements + (index - 1) * size, depth)) return false;
        if (!put_tag(writer, field->number, lifeline_wire_type(field))) return false;
    }
    return true;
}

static bool put_field(Writer *writer, const LifelineField *field, const void *message, uint32_t depth) {
    if (lifeline_is_repeated(field)) return put_repeated(writer, field, message, depth);
    return put_value(writer, field, lifeline_at(message, field->offset), depth)
           && put_tag(writer, field->number, lifeline_wire_type(field));
}

static bool put_unknown_fields(Writer *writer, const ProtobufCMessage *message) {
    for (unsigned index = message->n_unknown_fields; index > 0; index -= 1) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[index - 1];
        if (!put_bytes(writer, field->data, field->len)) return false;
        if (!put_tag(writer, field->tag, field->wire_type)) return false;
    }
    return true;
}

static bool put_message(
    Writer *writer, const LifelineMessageTable *table, const void *message, uint32_t depth) {
    bool done = put_unknown_fields(writer, message);
    uint32_t number = 0;
    for (uint32_t index = table->field_count; done && index > 0; index -= 1) {
        const LifelineField *field = &table->fields[index - 1];
        number = field->number;
        if (lifeline_is_present(field, message)) done = put_field(writer, field, message, depth);
    }
    if (!done && writer->failure->message == NULL) {
        writer->failure->field_number = number;
        writer->failure->message = table;
    }
    return done;
}

static bool put_root(Writer *writer, const LifelineMessageTable *table, const void *message, uint32_t depth) {
    if (!put_message(writer, table, message, depth)) return false;
    if (bytes_held(writer->encoder) - writer->held <= INT32_MAX) return true;
    writer->failure->message = table;
    return fail(writer, LIFELINE_TOO_LARGE);
}

bool lifeline_message_encode(
    const LifelineMessageTable *table, const void *message, bool delimited, uint32_t maximum_depth,
    LifelineEncoder *encoder, LifelineFailure *failure) {
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    Writer writer = {.encoder = encoder, .held = bytes_held(encoder), .failure = failure};
    bool done = put_root(&writer, table, message, maximum_depth);
    if (done && delimited) done = put_varint(&writer, bytes_held(encoder) - writer.held);
    if (!done) {
        if (failure->message == NULL) failure->message = table;
        encoder->start = encoder->capacity - writer.held;
    }
    return done;
}
