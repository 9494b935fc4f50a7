// Decoding repeated fields, packed or not, whatever their declaration says.
//
// Invariant: a field's count covers only elements that are there, so a failure in the middle leaves a field to read.
#include "decoder.h"

void *lifeline_append(LifelineDecoder *decoder, void *message, const LifelineField *field, size_t more) {
    void *place = lifeline_mutable_at(message, field->offset);
    size_t count = lifeline_count(field, message);
    size_t size = lifeline_value_size(field);
    // Neither is over SIZE_MAX / 2: both are counts of things in memory.
    void *elements = lifeline_array_reserve(decoder->arena, lifeline_load_pointer(place), count, count + more, size);
    if (elements == NULL) {
        lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
        return NULL;
    }
    lifeline_store_pointer(place, elements);
    return (uint8_t *)elements + count * size;
}

static LifelineStep decode_packed_fixed(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload) {
    size_t size = lifeline_value_size(field);
    size_t length = lifeline_left(&payload);
    if (length % size != 0) return lifeline_fail(decoder, LIFELINE_INVALID_LENGTH);
    void *elements = lifeline_append(decoder, scope->message, field, length / size);
    if (elements == NULL) return LIFELINE_STEP_FAILED;
    memcpy(elements, payload.next, length);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + length / size);
    return LIFELINE_STEP_STORED;
}

// Each varint has one byte whose top bit is clear, its last.
static size_t count_varints(LifelineInput payload) {
    size_t count = 0;
    for (const uint8_t *next = payload.next; next != payload.end; next += 1) count += *next < 0x80;
    return count;
}

static LifelineStep decode_packed_varints(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload) {
    size_t size = lifeline_value_size(field);
    uint8_t *elements = lifeline_append(decoder, scope->message, field, count_varints(payload));
    if (elements == NULL) return LIFELINE_STEP_FAILED;
    size_t tag_length = lifeline_varint_length((uint64_t)field->number << 3);
    size_t added = 0;
    size_t unknown_size = 0;
    LifelineInput rest = payload;
    while (rest.next != rest.end) {
        uint64_t value = 0;
        LifelineStatus status = lifeline_read_varint(&rest, &value);
        if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
        if (lifeline_is_closed_enum(field) && !lifeline_enum_knows(field, (int32_t)value)) {
            unknown_size += tag_length + lifeline_varint_length(value);
            continue;
        }
        lifeline_store_scalar(elements + added * size, size, lifeline_from_wire(field, value));
        added += 1;
    }
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
    void *element = lifeline_append(decoder, scope->message, field, 1);
    if (element == NULL) return LIFELINE_STEP_FAILED;
    lifeline_store_scalar(element, lifeline_value_size(field), bits);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return LIFELINE_STEP_STORED;
}

static LifelineStep decode_bytes(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    void *element = lifeline_append(decoder, scope->message, field, 1);
    if (element == NULL) return LIFELINE_STEP_FAILED;
    LifelineStep step = lifeline_decode_bytes(decoder, &scope->input, field, element);
    if (step != LIFELINE_STEP_STORED) return step;
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return LIFELINE_STEP_STORED;
}

static LifelineStep decode_message(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload = scope->input;
    if (!lifeline_enter_child(decoder, scope, &payload)) return LIFELINE_STEP_FAILED;
    void *element = lifeline_append(decoder, scope->message, field, 1);
    if (element == NULL) return LIFELINE_STEP_FAILED;
    void *child = lifeline_message_create(field->message, decoder->arena);
    if (child == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    lifeline_store_pointer(element, child);
    lifeline_set_count(field, scope->message, lifeline_count(field, scope->message) + 1);
    return lifeline_decode_child(decoder, field->message, child, payload);
}

LifelineStep lifeline_decode_repeated(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    uint32_t own_wire_type = lifeline_wire_type(field);
    if (wire_type != own_wire_type) {
        return wire_type == LIFELINE_WIRE_LENGTH_DELIMITED ? decode_packed(decoder, scope, field)
                                                           : LIFELINE_STEP_UNKNOWN;
    }
    if (field->type == LIFELINE_TYPE_MESSAGE) return decode_message(decoder, scope, field);
    if (lifeline_is_bytes(field)) return decode_bytes(decoder, scope, field);
    return decode_scalar(decoder, scope, field, wire_type);
}
