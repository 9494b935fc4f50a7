#include "unknown_fields.h"

#include "decoder.h"

// As deep as groups can be decoded.
enum { DEPTH = 1000 };

LifelineUnknownFields lifeline_unknown_fields(const LifelineMessageTable *table, const void *message) {
    ProtobufCMessage base;
    memcpy(&base, message, sizeof base);
    return (LifelineUnknownFields){
        .runs = base.unknown_fields,
        .run_count = base.n_unknown_fields,
        .is_message_set = (table->flags & LIFELINE_MESSAGE_SET) != 0};
}

// Finds the type and the message in an item of a message set: a group with the number 1 and the fields type_id = 2 and
// message = 3. False for one that lacks either or has one of them twice, which stays a group.
static bool read_item(LifelineInput input, LifelineUnknownField *field) {
    uint64_t type = 0;
    LifelineInput content = {.next = NULL, .end = NULL};
    while (input.next != input.end) {
        uint32_t tag;
        if (lifeline_read_tag(&input, &tag) != LIFELINE_OK) return false;
        if ((tag & 7) == LIFELINE_WIRE_END_GROUP) break;
        const uint8_t *start = input.next;
        if (tag == (2 << 3 | LIFELINE_WIRE_VARINT)) {
            if (type != 0 || lifeline_read_varint(&input, &type) != LIFELINE_OK) return false;
            continue;
        }
        if (lifeline_skip_value(&input, tag, DEPTH) != LIFELINE_OK) return false;
        if (tag != (3 << 3 | LIFELINE_WIRE_LENGTH_DELIMITED)) continue;
        if (content.next != NULL) return false;
        content = (LifelineInput){.next = start, .end = input.next};
    }
    if (type == 0 || type > UINT32_MAX >> 3 || content.next == NULL) return false;
    field->extension_tag = (uint32_t)type << 3 | LIFELINE_WIRE_LENGTH_DELIMITED;
    field->extension_value = content.next;
    field->extension_count = lifeline_left(&content);
    return true;
}

bool lifeline_next_unknown_field(LifelineUnknownFields *fields, LifelineUnknownField *field) {
    if (fields->input.next != fields->input.end) {
        if (lifeline_read_tag(&fields->input, &field->tag) != LIFELINE_OK) return false;
    } else {
        if (fields->run_count == 0) return false;
        // In a run of fields, the first one's tag is stored separately.
        ProtobufCMessageUnknownField run = *fields->runs;
        field->tag = run.tag << 3 | (uint32_t)run.wire_type;
        fields->input = (LifelineInput){.next = run.data, .end = run.data + run.len};
        fields->runs += 1;
        fields->run_count -= 1;
    }
    field->value = fields->input.next;
    if (lifeline_skip_value(&fields->input, field->tag, DEPTH) != LIFELINE_OK) return false;
    field->count = (size_t)(fields->input.next - field->value);
    LifelineInput group = {.next = field->value, .end = fields->input.next};
    bool may_be_item = fields->is_message_set && field->tag == (1 << 3 | LIFELINE_WIRE_START_GROUP);
    if (may_be_item && read_item(group, field)) return true;
    field->extension_tag = field->tag;
    field->extension_value = field->value;
    field->extension_count = field->count;
    return true;
}
