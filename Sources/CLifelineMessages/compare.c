// Compares messages field by field, and their unknown fields by the bytes that these encode to: the records that hold
// the bytes depend on which other fields stood between them in the input.
#include "fields.h"
#include "lifeline_message.h"
#include "varint.h"

static bool equal_bytes(ProtobufCBinaryData left, ProtobufCBinaryData right) {
    return lifeline_bytes_equal(left.data, left.len, right.data, right.len);
}

static bool equal_values(const LifelineField *field, const void *left, const void *right) {
    switch (field->type) {
        case LIFELINE_TYPE_STRING:
        case LIFELINE_TYPE_BYTES:
            return equal_bytes(lifeline_load_bytes(left), lifeline_load_bytes(right));
        case LIFELINE_TYPE_MESSAGE:
            return lifeline_message_equal(field->message, lifeline_load_pointer(left), lifeline_load_pointer(right));
        case LIFELINE_TYPE_BOOL:
            return (lifeline_load32(left) != 0) == (lifeline_load32(right) != 0);
        default:
            return memcmp(left, right, lifeline_value_size(field)) == 0;
    }
}

// Whether the bytes of a value in memory are all that counts. Of a boolean, only whether it is zero does.
static bool is_number(const LifelineField *field) {
    return !lifeline_is_bytes(field) && field->type != LIFELINE_TYPE_MESSAGE && field->type != LIFELINE_TYPE_BOOL;
}

static bool equal_elements(const LifelineField *field, const void *left, const void *right) {
    size_t count = lifeline_count(field, left);
    if (count != lifeline_count(field, right)) return false;
    size_t size = lifeline_value_size(field);
    const uint8_t *left_elements = lifeline_load_pointer(lifeline_at(left, field->offset));
    const uint8_t *right_elements = lifeline_load_pointer(lifeline_at(right, field->offset));
    if (is_number(field)) return memcmp(left_elements, right_elements, count * size) == 0;
    for (size_t offset = 0; offset < count * size; offset += size) {
        if (!equal_values(field, left_elements + offset, right_elements + offset)) return false;
    }
    return true;
}

static bool equal_fields(const LifelineField *field, const void *left, const void *right) {
    bool present = lifeline_is_present(field, left);
    if (present != lifeline_is_present(field, right)) return false;
    if (!present) return true;
    if (lifeline_is_repeated(field)) return equal_elements(field, left, right);
    return equal_values(field, lifeline_at(left, field->offset), lifeline_at(right, field->offset));
}

// Reads the unknown fields of a message as one sequence of bytes, in pieces: the tag of a record, then its data.
typedef struct UnknownBytes {
    const ProtobufCMessageUnknownField *_Nullable record;  // the next one
    unsigned records_left;
    const uint8_t *_Nullable piece;
    size_t piece_left;
    const uint8_t *_Nullable data;  // the piece after this one
    size_t data_left;
    uint8_t tag[LIFELINE_LARGEST_VARINT];
} UnknownBytes;

// Goes to the next piece that is not empty when the current one is used up. Returns false at the end.
static bool refill(UnknownBytes *bytes) {
    while (bytes->piece_left == 0) {
        if (bytes->data_left > 0) {
            bytes->piece = bytes->data;
            bytes->piece_left = bytes->data_left;
            bytes->data_left = 0;
        } else {
            if (bytes->records_left == 0) return false;
            uint64_t tag = (uint64_t)bytes->record->tag << 3 | (uint64_t)bytes->record->wire_type;
            bytes->piece = bytes->tag;
            bytes->piece_left = (size_t)(lifeline_write_varint(bytes->tag, tag) - bytes->tag);
            bytes->data = bytes->record->data;
            bytes->data_left = bytes->record->len;
            bytes->record += 1;
            bytes->records_left -= 1;
        }
    }
    return true;
}

static void advance(UnknownBytes *bytes, size_t count) {
    bytes->piece += count;
    bytes->piece_left -= count;
}

static bool equal_unknown_fields(const ProtobufCMessage *left, const ProtobufCMessage *right) {
    UnknownBytes left_bytes = {.record = left->unknown_fields, .records_left = left->n_unknown_fields};
    UnknownBytes right_bytes = {.record = right->unknown_fields, .records_left = right->n_unknown_fields};
    while (true) {
        bool more = refill(&left_bytes);
        if (more != refill(&right_bytes)) return false;
        if (!more) return true;
        size_t common = left_bytes.piece_left;
        if (common > right_bytes.piece_left) common = right_bytes.piece_left;
        if (memcmp(left_bytes.piece, right_bytes.piece, common) != 0) return false;
        advance(&left_bytes, common);
        advance(&right_bytes, common);
    }
}

bool lifeline_message_equal(
    const LifelineMessageTable *table, const void *_Nullable left, const void *_Nullable right) {
    if (left == right) return true;
    if (left == NULL) left = table->default_instance;
    if (right == NULL) right = table->default_instance;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        if (!equal_fields(&table->fields[index], left, right)) return false;
    }
    return equal_unknown_fields(left, right);
}
