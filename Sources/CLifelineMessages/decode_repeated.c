// Decodes repeated fields, packed or not, whatever their declaration says.
//
// Invariant: a field's count covers only elements that were stored, so that a failure leaves a field that can be read.
#include "array.h"
#include "decoder.h"

static LifelineStep decode_packed_fixed(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload) {
    size_t size = lifeline_value_size(field);
    size_t length = lifeline_left(&payload);
    if (length % size != 0) return lifeline_fail(decoder, LIFELINE_INVALID_LENGTH);
    void *elements = lifeline_append(decoder->arena, scope->message, field, length / size);
    if (elements == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    memcpy(elements, payload.next, length);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + length / size);
    return LIFELINE_STEP_STORED;
}

// The number of bytes, of eight, whose top bit is clear.
static inline size_t count_last_bytes(uint64_t eight) {
    uint64_t last_bytes = (~eight & 0x8080808080808080) >> 7;  // one in each
    return last_bytes * 0x0101010101010101 >> 56;              // their sum, in the top byte
}

// The last byte of each varint has a clear top bit, and no other byte has. The payload is not empty.
static size_t count_varints(LifelineInput payload) {
    size_t count = 0;
    const uint8_t *next = payload.next;
    for (; payload.end - next > 8; next += 8) count += count_last_bytes(lifeline_load_scalar(next, 8));
    // Shifts out the bytes after the payload, so that they count as bytes whose top bit is set.
    uint64_t rest = ~lifeline_load_scalar(next, 8) << (64 - 8 * (payload.end - next));
    return count + count_last_bytes(~rest);
}

// Reads varints into elements, up to one of more than eight bytes or one that the payload cuts off. `payload` is then
// what is left. Returns the place after the last element.
LIFELINE_ALWAYS_INLINE uint8_t *decode_varints(LifelineInput *payload, int type, uint8_t *place) {
    const uint8_t *next = payload->next;
    while (next != payload->end) {
        uint64_t value = *next;
        const uint8_t *after = next + 1;
        if (value >= 0x80) {
            after = lifeline_read_long_varint(next, &value);
            if (after == NULL || after > payload->end) break;
        }
        lifeline_store_scalar(place, lifeline_type_size(type), lifeline_from_wire(type, value));
        place += lifeline_type_size(type);
        next = after;
    }
    payload->next = next;
    return place;
}

// The same for the field's type, among types that are read in the same way.
static uint8_t *decode_short_varints(LifelineInput *payload, const LifelineField *field, uint8_t *place) {
    switch (field->type) {
        case LIFELINE_TYPE_BOOL:
            return decode_varints(payload, LIFELINE_TYPE_BOOL, place);
        case LIFELINE_TYPE_SINT32:
            return decode_varints(payload, LIFELINE_TYPE_SINT32, place);
        case LIFELINE_TYPE_SINT64:
            return decode_varints(payload, LIFELINE_TYPE_SINT64, place);
        case LIFELINE_TYPE_INT64:
        case LIFELINE_TYPE_UINT64:
            return decode_varints(payload, LIFELINE_TYPE_UINT64, place);
        default:
            return decode_varints(payload, LIFELINE_TYPE_UINT32, place);
    }
}

static LifelineStep decode_packed_varints(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload) {
    size_t size = lifeline_value_size(field);
    uint8_t *elements = lifeline_append(decoder->arena, scope->message, field, count_varints(payload));
    if (elements == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    uint8_t *place = elements;
    bool is_closed = lifeline_is_closed_enum(field);
    size_t tag_length = lifeline_varint_length((uint64_t)field->number << 3);
    size_t unknown_size = 0;
    LifelineInput rest = payload;
    while (rest.next != rest.end) {
        if (!is_closed) place = decode_short_varints(&rest, field, place);
        if (rest.next == rest.end) break;
        // One of nine or ten bytes, a malformed one, or any of a closed enum.
        uint64_t value = 0;
        LifelineStatus status = lifeline_read_varint(&rest, &value);
        if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
        if (is_closed && !lifeline_enum_knows(field, (int32_t)value)) {
            unknown_size += tag_length + lifeline_varint_length(value);
            continue;
        }
        lifeline_store_scalar(place, size, lifeline_from_wire(field->type, value));
        place += size;
    }
    size_t added = (size_t)(place - elements) / size;
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + added);
    if (unknown_size == 0) return LIFELINE_STEP_STORED;
    return lifeline_keep_unknown_numbers(decoder, scope, field, payload, unknown_size);
}

static LifelineStep decode_packed(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload = scope->input;
    LifelineStatus status = lifeline_read_payload(&scope->input, &payload);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    return lifeline_decode_packed(decoder, scope, field, payload);
}

LifelineStep lifeline_decode_packed(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload) {
    if (lifeline_left(&payload) == 0) return LIFELINE_STEP_STORED;
    return lifeline_wire_type(field) == LIFELINE_WIRE_VARINT
               ? decode_packed_varints(decoder, scope, field, payload)
               : decode_packed_fixed(decoder, scope, field, payload);
}

static LifelineStep decode_scalar(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    uint64_t bits = 0;
    LifelineStatus status = lifeline_read_scalar(&scope->input, field, wire_type, &bits);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    if (lifeline_is_closed_enum(field) && !lifeline_enum_knows(field, (int32_t)bits)) {
        return LIFELINE_STEP_UNKNOWN;
    }
    void *element = lifeline_append(decoder->arena, scope->message, field, 1);
    if (element == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    lifeline_store_scalar(element, lifeline_value_size(field), bits);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return LIFELINE_STEP_STORED;
}

static LifelineStep decode_bytes(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    void *element = lifeline_append(decoder->arena, scope->message, field, 1);
    if (element == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    LifelineStep step = lifeline_decode_bytes(decoder, &scope->input, field, element);
    if (step != LIFELINE_STEP_STORED) return step;
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return LIFELINE_STEP_STORED;
}

static LifelineStep decode_message(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload;
    if (!lifeline_enter_child(decoder, scope, field, &payload)) return LIFELINE_STEP_FAILED;
    void *element = lifeline_append(decoder->arena, scope->message, field, 1);
    if (element == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    void *child = lifeline_message_create(field->message, decoder->arena);
    if (child == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    lifeline_store_pointer(element, child);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return lifeline_decode_child(decoder, scope, field, child, payload);
}

LifelineStep lifeline_decode_repeated(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    uint32_t own_wire_type = lifeline_wire_type(field);
    if (wire_type != own_wire_type) {
        bool may_be_packed = wire_type == LIFELINE_WIRE_LENGTH_DELIMITED && field->type != LIFELINE_TYPE_MESSAGE;
        return may_be_packed ? decode_packed(decoder, scope, field) : LIFELINE_STEP_UNKNOWN;
    }
    if (field->type == LIFELINE_TYPE_MESSAGE) return decode_message(decoder, scope, field);
    if (lifeline_is_bytes(field)) return decode_bytes(decoder, scope, field);
    return decode_scalar(decoder, scope, field, wire_type);
}
