// Decodes a message's fields by the plain path: the loop over the fields, and those that are not repeated.
//
// One pass, which looks at every byte a bounded number of times. A field's value is stored before its presence is
// marked, so that a failure leaves a message that can be read. In a oneof, the active member is always written whole,
// and the bytes of the others are never read, so switching members needs no clearing.
#include "decoder.h"

static LifelineStep decode_scalar(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    uint64_t bits = 0;
    LifelineStatus status = lifeline_read_scalar(&scope->input, field, wire_type, &bits);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    // Values of maps are checked when their entry is complete.
    bool checked = lifeline_is_closed_enum(field) && field->presence != LIFELINE_PRESENCE_ALWAYS;
    if (checked && !lifeline_enum_knows(field, (int32_t)bits)) return LIFELINE_STEP_UNKNOWN;
    lifeline_store_scalar(lifeline_mutable_at(scope->message, field->offset), lifeline_value_size(field), bits);
    return LIFELINE_STEP_STORED;
}

bool lifeline_decode_group(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, void *child) {
    LifelineScope inner = {.table = field->message, .message = child, .input = scope->input};
    while (true) {
        LifelineInput behind_tag = inner.input;
        uint32_t tag = 0;
        LifelineStatus status = lifeline_read_tag(&behind_tag, &tag);
        bool is_end = status == LIFELINE_OK && (tag & 7) == LIFELINE_WIRE_END_GROUP;
        if (is_end && tag >> 3 != field->number) status = LIFELINE_UNMATCHED_GROUP;
        decoder->failure->status = status;
        if (status != LIFELINE_OK) return false;
        if (is_end) {
            scope->input.next = behind_tag.next;
            return true;
        }
        if (!lifeline_decode_field(decoder, &inner)) return false;
    }
}

// Merges into the submessage, if there is one.
static LifelineStep decode_submessage(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload;
    if (!lifeline_enter_child(decoder, scope, field, &payload)) return LIFELINE_STEP_FAILED;

    void *value = lifeline_mutable_at(scope->message, field->offset);
    void *child = lifeline_is_present(field, scope->message) ? lifeline_load_pointer(value) : NULL;
    if (child == NULL) {
        child = lifeline_message_create(field->message, decoder->arena);
        if (child == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
        lifeline_store_pointer(value, child);
        lifeline_mark_present(field, scope->message);
    }
    return lifeline_decode_child(decoder, scope, field, child, payload);
}

static LifelineStep decode_singular(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    if (wire_type != lifeline_wire_type(field)) return LIFELINE_STEP_UNKNOWN;
    if (field->type == LIFELINE_TYPE_MESSAGE) return decode_submessage(decoder, scope, field);
    void *value = lifeline_mutable_at(scope->message, field->offset);
    LifelineStep step = lifeline_is_bytes(field) ? lifeline_decode_bytes(decoder, &scope->input, field, value)
                                                 : decode_scalar(decoder, scope, field, wire_type);
    if (step == LIFELINE_STEP_STORED) lifeline_mark_present(field, scope->message);
    return step;
}

static LifelineStep decode_known(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    switch (field->presence) {
        case LIFELINE_PRESENCE_REPEATED:
            return lifeline_decode_repeated(decoder, scope, field, wire_type);
        case LIFELINE_PRESENCE_MAP:
            if (wire_type != LIFELINE_WIRE_LENGTH_DELIMITED) return LIFELINE_STEP_UNKNOWN;
            return lifeline_decode_map_entry(decoder, scope, field);
        default:
            return decode_singular(decoder, scope, field, wire_type);
    }
}

static LifelineStep decode_tagged(LifelineDecoder *decoder, LifelineScope *scope, uint32_t tag) {
    const uint8_t *value = scope->input.next;
    const LifelineField *field = lifeline_find_field(scope->table, tag >> 3);
    LifelineStep step = LIFELINE_STEP_UNKNOWN;
    if (field != NULL) step = decode_known(decoder, scope, field, tag & 7);
    if (step != LIFELINE_STEP_UNKNOWN) return step;
    scope->input.next = value;
    return lifeline_keep_unknown(decoder, scope, tag);
}

bool lifeline_decode_field(LifelineDecoder *decoder, LifelineScope *scope) {
    scope->field_start = scope->input.next;
    uint32_t tag = 0;
    LifelineStatus status = lifeline_read_tag(&scope->input, &tag);
    LifelineStep step = status == LIFELINE_OK ? decode_tagged(decoder, scope, tag) : lifeline_fail(decoder, status);
    if (step != LIFELINE_STEP_FAILED) return true;
    return lifeline_locate_failure(decoder, scope->table, tag >> 3, scope->field_start);
}

bool lifeline_decode_fields_plain(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, LifelineInput input) {
    LifelineScope scope = {.table = table, .message = message, .input = input};
    while (scope.input.next != scope.input.end) {
        if (!lifeline_decode_field(decoder, &scope)) return false;
    }
    return true;
}
