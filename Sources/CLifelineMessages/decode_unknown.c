// Skips fields that a table does not know, and keeps them so that they can be written again.
//
// One ProtobufCMessageUnknownField is a run of fields that follow each other in the input. Its tag and wire type are
// those of the first field, its data are all bytes after that tag to the end of the run. Writing the tag and then the
// data, as libprotobuf-c does too, restores the run. So a run costs one record, however many fields it has, and a group
// is kept like any other field.
#include "arena.h"
#include "decoder.h"
#include "lifeline_array.h"
#include "unknown_fields.h"

static LifelineStatus skip_group(LifelineInput *input, uint32_t number, uint32_t depth) {
    while (input->next != input->end) {
        uint32_t tag = 0;
        LifelineStatus status = lifeline_read_tag(input, &tag);
        if (status != LIFELINE_OK) return status;
        if ((tag & 7) == LIFELINE_WIRE_END_GROUP) return tag >> 3 == number ? LIFELINE_OK : LIFELINE_UNMATCHED_GROUP;
        status = lifeline_skip_value(input, tag, depth);
        if (status != LIFELINE_OK) return status;
    }
    return LIFELINE_TRUNCATED;
}

static LifelineStatus skip_bytes(LifelineInput *input, size_t count) {
    if (lifeline_left(input) < count) return LIFELINE_TRUNCATED;
    input->next += count;
    return LIFELINE_OK;
}

LifelineStatus lifeline_skip_value(LifelineInput *input, uint32_t tag, uint32_t depth) {
    uint64_t value;
    LifelineInput payload;
    switch (tag & 7) {
        case LIFELINE_WIRE_VARINT:
            return lifeline_read_varint(input, &value);
        case LIFELINE_WIRE_FIXED64:
            return skip_bytes(input, 8);
        case LIFELINE_WIRE_LENGTH_DELIMITED:
            return lifeline_read_payload(input, &payload);
        case LIFELINE_WIRE_START_GROUP:
            return depth == 0 ? LIFELINE_TOO_DEEP : skip_group(input, tag >> 3, depth - 1);
        case LIFELINE_WIRE_END_GROUP:
            return LIFELINE_UNMATCHED_GROUP;
        case LIFELINE_WIRE_FIXED32:
            return skip_bytes(input, 4);
        default:
            return LIFELINE_INVALID_TAG;
    }
}

bool lifeline_is_message(LifelineInput input) {
    while (input.next != input.end) {
        uint32_t tag = 0;
        if (lifeline_read_tag(&input, &tag) != LIFELINE_OK) return false;
        if (lifeline_skip_value(&input, tag, LIFELINE_GROUP_DEPTH) != LIFELINE_OK) return false;
    }
    return true;
}

// Whether the options keep the unknown field from `start` to `end`.
static bool is_kept(
    const LifelineDecoder *decoder, const LifelineScope *scope, const uint8_t *start, const uint8_t *end) {
    // Entries of maps drop theirs, as in other implementations: a map has no place for them.
    if ((scope->table->flags & LIFELINE_MESSAGE_MAP_ENTRY) != 0) return false;
    const LifelineTypes *types = decoder->kept_extensions;
    if (types == NULL) return true;
    if (types->find_extension == NULL) return false;
    LifelineUnknownFields fields = {
        .input = {.next = start, .end = end}, .is_message_set = (scope->table->flags & LIFELINE_MESSAGE_SET) != 0};
    LifelineUnknownField field;
    return lifeline_next_unknown_field(&fields, &field)
           && types->find_extension(types->context, scope->table, field.extension_tag >> 3, NULL, 0) != NULL;
}

// Keeps the field whose tag is at `start` and whose data ends at `end`. When the data of the last record ends at
// `start`, that record grows by the field. But not by one whose tag is longer than necessary: the tag of a record is
// written anew, in its shortest form, and the output must not depend on whether two fields happen to touch.
static LifelineStep store(
    LifelineDecoder *decoder, LifelineScope *scope, uint32_t tag, const uint8_t *start, const uint8_t *data,
    const uint8_t *end) {
    if (!is_kept(decoder, scope, start, end)) return LIFELINE_STEP_STORED;
    ProtobufCMessage *message = scope->message;
    size_t count = message->n_unknown_fields;
    if (count > 0 && (size_t)(data - start) == lifeline_varint_length(tag)) {
        ProtobufCMessageUnknownField *last = &message->unknown_fields[count - 1];
        if (last->data + last->len == start) {
            last->len += (size_t)(end - start);
            return LIFELINE_STEP_STORED;
        }
    }
    ProtobufCMessageUnknownField *fields = lifeline_array_reserve(
        decoder->arena, message->unknown_fields, count, count + 1, sizeof(ProtobufCMessageUnknownField));
    if (fields == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    fields[count].tag = tag >> 3;
    fields[count].wire_type = (ProtobufCWireType)(tag & 7);
    fields[count].len = (size_t)(end - data);
    fields[count].data = (uint8_t *)(uintptr_t)data;
    message->unknown_fields = fields;
    message->n_unknown_fields += 1;
    return LIFELINE_STEP_STORED;
}

LifelineStep lifeline_keep_unknown(LifelineDecoder *decoder, LifelineScope *scope, uint32_t tag) {
    const uint8_t *data = scope->input.next;
    LifelineStatus status = lifeline_skip_value(&scope->input, tag, decoder->depth);
    if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
    return store(decoder, scope, tag, scope->field_start, data, scope->input.next);
}

LifelineStep lifeline_keep_unknown_numbers(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload, size_t size) {
    uint8_t *first = lifeline_arena_allocate(decoder->arena, size);
    if (first == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    uint32_t tag = field->number << 3 | LIFELINE_WIRE_VARINT;
    uint8_t *next = first;
    while (payload.next != payload.end) {
        uint64_t value = 0;
        LifelineStatus status = lifeline_read_varint(&payload, &value);
        if (status != LIFELINE_OK) return lifeline_fail(decoder, status);
        if (lifeline_enum_knows(field, (int32_t)value)) continue;
        next = lifeline_write_varint(next, tag);
        next = lifeline_write_varint(next, value);
    }
    return store(decoder, scope, tag, first, first + lifeline_varint_length(tag), next);
}
