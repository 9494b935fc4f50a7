// Decoding, the plain path: the loop over a message's fields, and its singular fields.
//
// One pass; every byte is looked at a bounded number of times. A field's value is stored before its presence is marked,
// so that a failure leaves a message that can be read. In a oneof the active member is always written whole, and the
// others' bytes are never read, so switching members needs no clearing.
#include "arena.h"
#include "decoder.h"
#include "utf8.h"

LifelineStep lifeline_decode_bytes(
    LifelineDecoder *decoder, LifelineInput *input, const LifelineField *field, void *value) {
    LifelineInput payload = *input;
    LifelineStatus status = lifeline_read_payload(input, &payload);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    size_t length = lifeline_left(&payload);
    bool validate = (field->flags & LIFELINE_FIELD_VALIDATE_UTF8) != 0 && !decoder->accept_malformed_text;
    if (validate && !lifeline_is_utf8(payload.next, length)) return lifeline_fail(decoder, LIFELINE_INVALID_UTF8);
    lifeline_store_bytes(value, payload.next, length);
    return LIFELINE_STEP_STORED;
}

static LifelineStep decode_scalar(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type) {
    uint64_t bits = 0;
    LifelineStatus status = lifeline_read_scalar(&scope->input, field, wire_type, &bits);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    // A map's entry is looked at as a whole once it is read.
    bool checked = lifeline_is_closed_enum(field) && field->presence != LIFELINE_PRESENCE_ALWAYS;
    if (checked && !lifeline_enum_knows(field, (int32_t)bits)) return LIFELINE_STEP_UNKNOWN;
    lifeline_store_scalar(lifeline_mutable_at(scope->message, field->offset), lifeline_value_size(field), bits);
    return LIFELINE_STEP_STORED;
}

// Merges into the submessage that is there.
static LifelineStep decode_submessage(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload = scope->input;
    if (!lifeline_enter_child(decoder, scope, &payload)) return LIFELINE_STEP_FAILED;

    void *value = lifeline_mutable_at(scope->message, field->offset);
    void *child = lifeline_is_present(field, scope->message) ? lifeline_load_pointer(value) : NULL;
    if (child == NULL) {
        child = lifeline_message_create(field->message, decoder->arena);
        if (child == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
        lifeline_store_pointer(value, child);
        lifeline_mark_present(field, scope->message);
    }
    return lifeline_decode_child(decoder, field->message, child, payload);
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

bool lifeline_locate_failure(
    LifelineDecoder *decoder, const LifelineMessageTable *table, uint32_t field_number, const uint8_t *field_start) {
    LifelineFailure *failure = decoder->failure;
    if (failure->message != NULL) return false;  // a message inside this one has said where
    failure->offset = (size_t)(field_start - decoder->bytes);
    failure->field_number = field_number;
    failure->message = table;
    return false;
}

bool lifeline_decode_fields_plain(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, LifelineInput input) {
    LifelineScope scope = {.table = table, .message = message, .input = input};
    while (scope.input.next != scope.input.end) {
        if (!lifeline_decode_field(decoder, &scope)) return false;
    }
    return true;
}

bool lifeline_enter_child(LifelineDecoder *decoder, LifelineScope *scope, LifelineInput *payload) {
    LifelineStatus status = decoder->depth == 0 ? LIFELINE_TOO_DEEP : lifeline_read_payload(&scope->input, payload);
    decoder->failure->status = status;
    return status == LIFELINE_OK;
}

LifelineStep lifeline_decode_child(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *child, LifelineInput payload) {
    decoder->depth -= 1;
    bool decoded = decoder->decode_fields(decoder, table, child, payload);
    decoder->depth += 1;
    return decoded ? LIFELINE_STEP_STORED : LIFELINE_STEP_FAILED;
}

static bool decode_with(
    LifelineDecodeFields *decode_fields, const LifelineMessageTable *table, void *message, const uint8_t *bytes,
    size_t count, LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure) {
    LifelineDecoder decoder = {
        .arena = arena,
        .depth = options->maximum_depth,
        .accept_malformed_text = options->accept_malformed_text,
        .decode_fields = decode_fields,
        .bytes = bytes,
        .failure = failure,
    };
    *failure = (LifelineFailure){.status = LIFELINE_OK};
    if (options->accept_malformed_text || (table->flags & LIFELINE_MESSAGE_HAS_UNCHECKED_TEXT) != 0) {
        arena->may_hold_malformed_text = true;
    }
    if (count == 0) return true;
    LifelineInput input = {.next = bytes, .end = bytes + count};
    bool decoded = decode_fields(&decoder, table, message, input);
    if (decoder.unsorted_maps == NULL) return decoded;
    // Also after a failure: what was read so far keeps the order that readers of maps rely on.
    return lifeline_sort_maps(&decoder) && decoded;
}

bool lifeline_message_decode_plain(
    const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count, LifelineArena *arena,
    const LifelineDecodeOptions *options, LifelineFailure *failure) {
    return decode_with(lifeline_decode_fields_plain, table, message, bytes, count, arena, options, failure);
}

bool lifeline_message_decode(
    const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count, LifelineArena *arena,
    const LifelineDecodeOptions *options, LifelineFailure *failure) {
#if defined(LIFELINE_HAS_TAIL_CALLS)
    LifelineDecodeFields *decode_fields = lifeline_decode_fields_with_tail_calls;
#else
    LifelineDecodeFields *decode_fields = lifeline_decode_fields_plain;
#endif
    return decode_with(decode_fields, table, message, bytes, count, arena, options, failure);
}

void *lifeline_message_parse(
    const LifelineMessageTable *table, const uint8_t *bytes, size_t count, LifelineArena *arena, void *memory,
    size_t size, const LifelineDecodeOptions *options, LifelineFailure *failure) {
    lifeline_arena_init(arena, memory, size, count / 4);
    arena->budget = options->budget;
    // There is room for both. The root comes behind the input, and is more than what has to be readable there.
    uint8_t *copy = lifeline_arena_take(arena, lifeline_rounded_up(count));
    if (count > 0) memcpy(copy, bytes, count);
    size_t root_size = lifeline_rounded_up(table->size);
    void *message = lifeline_arena_take(arena, root_size);
    lifeline_clear_message(table, message, root_size);
    return lifeline_message_decode(table, message, copy, count, arena, options, failure) ? message : NULL;
}
