// Encodes repeated fields and maps, from the last element to the first.
#include "encoder.h"

// Writes numbers of one type, each with its tag in front unless they are packed.
LIFELINE_ALWAYS_INLINE uint8_t *_Nullable put_numbers(
    LifelineWriter *writer, uint8_t *place, int type, const LifelineField *field, const uint8_t *elements,
    size_t count, bool packed) {
    size_t size = lifeline_type_size(type);
    for (const uint8_t *element = elements + count * size; element != elements;) {
        element -= size;
        place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
        if (place == NULL) return NULL;
        place = lifeline_put_number(place, type, lifeline_load_number(type, element));
        if (!packed) place = lifeline_put_tag(place, field);
    }
    return place;
}

// Writes the values of a packed field, without tag and length.
static uint8_t *_Nullable put_packed_values(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const uint8_t *elements, size_t count) {
    // Fixed-size numbers have the same bytes in memory and on the wire.
    if (lifeline_wire_type(field) != LIFELINE_WIRE_VARINT) {
        return lifeline_put_bytes(writer, place, elements, count * lifeline_value_size(field));
    }
    switch (field->type) {
#define CASE(TYPE, AS)         \
    case LIFELINE_TYPE_##TYPE: \
        return put_numbers(writer, place, LIFELINE_TYPE_##AS, field, elements, count, true);
        LIFELINE_FOR_EACH_NUMBER_TYPE(CASE)
#undef CASE
        default:
            return place;  // strings and messages are never packed
    }
}

static uint8_t *_Nullable put_packed(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const uint8_t *elements, size_t count) {
    size_t before = (size_t)(writer->end - place);  // growing the buffer keeps distances from its end
    place = put_packed_values(writer, place, field, elements, count);
    if (place != NULL) place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    return lifeline_put_tag(lifeline_put_varint(place, (size_t)(writer->end - place) - before), field);
}

static uint8_t *_Nullable put_strings(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const uint8_t *elements, size_t count) {
    for (size_t index = count; index > 0; index -= 1) {
        ProtobufCBinaryData bytes = lifeline_load_bytes(elements + (index - 1) * sizeof bytes);
        if (bytes.len <= LIFELINE_SHORT_STRING) {
            place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SHORT_STRING);
            if (place == NULL) return NULL;
            place = lifeline_put_short_string(place, bytes);
        } else {
            place = lifeline_put_bytes(writer, place, bytes.data, bytes.len);
            if (place == NULL) return NULL;
            place = lifeline_put_varint(place, bytes.len);
        }
        place = lifeline_put_tag(place, field);
    }
    return place;
}

static uint8_t *_Nullable put_messages(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const uint8_t *elements, size_t count) {
    bool is_group = (field->flags & LIFELINE_FIELD_GROUP) != 0;
    for (size_t index = count; index > 0; index -= 1) {
        const uint8_t *element = elements + (index - 1) * sizeof(void *);
        place = is_group ? lifeline_put_group(writer, place, field, element)
                         : lifeline_put_submessage(writer, place, field, element);
        if (place == NULL) return NULL;
        place = lifeline_put_tag(place, field);
    }
    return place;
}

uint8_t *lifeline_put_repeated(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *message) {
    size_t count = lifeline_count(field, message);
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, field->offset));
    if ((field->flags & LIFELINE_FIELD_PACKED) != 0) return put_packed(writer, place, field, elements, count);
    switch (field->type) {
#define CASE(TYPE, AS)         \
    case LIFELINE_TYPE_##TYPE: \
        return put_numbers(writer, place, LIFELINE_TYPE_##AS, field, elements, count, false);
        LIFELINE_FOR_EACH_NUMBER_TYPE(CASE)
#undef CASE
        case LIFELINE_TYPE_MESSAGE:
            return put_messages(writer, place, field, elements, count);
        default:
            return put_strings(writer, place, field, elements, count);
    }
}
