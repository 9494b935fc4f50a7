// Shared by the files of the decoder.
//
// decode.c has the functions that others call. decode_fields.c reads messages and their singular fields,
// decode_repeated.c repeated fields, decode_map.c entries of maps (map_order.c keeps those in order), and
// decode_unknown.c unknown fields. Together these are the plain path, which can read everything. decode_tail.c reads
// the common forms of fields faster and leaves the others to the plain path, a field at a time.
#ifndef LIFELINE_DECODER_H
#define LIFELINE_DECODER_H

#include "fields.h"
#include "lifeline_message.h"
#include "tail_calls.h"
#include "utf8.h"
#include "varint.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// A map field whose entries did not arrive in order. Each such map is listed once, however many entries it gets.
typedef struct LifelineUnsortedMap {
    const LifelineMessageTable *table;
    void *message;
    const LifelineField *field;
    struct LifelineUnsortedMap *_Nullable next;
} LifelineUnsortedMap;

typedef struct LifelineDecoder LifelineDecoder;

// Reads all of `input` into `message`. On failure the decoder's failure is set.
typedef bool LifelineDecodeFields(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, LifelineInput input);

// One call of lifeline_message_decode.
struct LifelineDecoder {
    LifelineArena *arena;
    uint32_t depth;  // how many messages and groups may still be nested
    bool accept_malformed_text;
    const LifelineTypes *_Nullable kept_extensions;  // as in LifelineDecodeOptions
    LifelineDecodeFields *decode_fields;  // how submessages are read
    const uint8_t *_Nullable bytes;  // the start of the whole input
    LifelineFailure *failure;
    LifelineUnsortedMap *_Nullable unsorted_maps;
};

// One message that is being read.
typedef struct LifelineScope {
    const LifelineMessageTable *table;
    void *message;
    LifelineInput input;
    const uint8_t *_Nullable field_start;  // the tag of the field that is being read
} LifelineScope;

// The outcome of reading a field whose number the table knows.
typedef enum LifelineStep {
    LIFELINE_STEP_FAILED,   // the failure has its status; lifeline_decode_field adds where it happened
    LIFELINE_STEP_STORED,   // the input is after the field
    LIFELINE_STEP_UNKNOWN,  // nothing was stored: the field belongs to the unknown ones
} LifelineStep;

static inline LifelineStep lifeline_fail(LifelineDecoder *decoder, LifelineStatus status) {
    decoder->failure->status = status;
    return LIFELINE_STEP_FAILED;
}

// Adds to a failure, which has its status, where it happened. Returns false.
static inline bool lifeline_locate_failure(
    LifelineDecoder *decoder, const LifelineMessageTable *table, uint32_t field_number, const uint8_t *field_start) {
    LifelineFailure *failure = decoder->failure;
    if (failure->message != NULL) return false;  // a submessage has added its own place
    failure->offset = (size_t)(field_start - decoder->bytes);
    failure->field_number = field_number;
    failure->message = table;
    return false;
}

// MARK: Messages

// Reads any field, at the start of the scope's input. On failure the decoder's failure is set.
bool lifeline_decode_field(LifelineDecoder *decoder, LifelineScope *scope);

LifelineDecodeFields lifeline_decode_fields_plain;

#if defined(LIFELINE_HAS_TAIL_CALLS)
LifelineDecodeFields lifeline_decode_fields_with_tail_calls;
#endif

// Finds the payload of a submessage, if the depth allows for one. For a group, the payload is the rest of the input:
// only the end tag shows where the group ends. Call this before you create the submessage, so that one that is too deep
// is not left behind in the message.
static inline bool lifeline_enter_child(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput *payload) {
    LifelineStatus status = LIFELINE_OK;
    *payload = scope->input;
    if (decoder->depth == 0) {
        status = LIFELINE_TOO_DEEP;
    } else if ((field->flags & LIFELINE_FIELD_GROUP) == 0) {
        status = lifeline_read_payload(&scope->input, payload);
    }
    decoder->failure->status = status;
    return status == LIFELINE_OK;
}

// Reads the fields of a group, whose start tag was just read, into `child`, up to the end tag. They are read by the
// plain path.
bool lifeline_decode_group(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, void *child);

// Reads the payload that lifeline_enter_child found into `child`, one level further down.
static inline LifelineStep lifeline_decode_child(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, void *child, LifelineInput payload) {
    decoder->depth -= 1;
    bool is_group = (field->flags & LIFELINE_FIELD_GROUP) != 0;
    bool decoded = is_group ? lifeline_decode_group(decoder, scope, field, child)
                            : decoder->decode_fields(decoder, field->message, child, payload);
    decoder->depth += 1;
    return decoded ? LIFELINE_STEP_STORED : LIFELINE_STEP_FAILED;
}

// MARK: Repeated fields and maps

LifelineStep lifeline_decode_repeated(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type);

// Reads the values of a packed field. `payload` is not empty.
LifelineStep lifeline_decode_packed(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload);

LifelineStep lifeline_decode_map_entry(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field);

// Appends a complete entry to a map.
LifelineStep lifeline_append_entry(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    void *entry);

// Puts all maps in order whose entries did not arrive so.
bool lifeline_sort_maps(LifelineDecoder *decoder);

// MARK: Unknown fields

// How deep groups may be nested in bytes that lifeline_is_message accepts as a message.
enum { LIFELINE_GROUP_DEPTH = 100 };

// Whether the input is a message of some type: well-formed fields, whatever they mean.
bool lifeline_is_message(LifelineInput input);

// Moves past the value of a field, whose tag was just read, with groups at most `depth` deep.
LifelineStatus lifeline_skip_value(LifelineInput *input, uint32_t tag, uint32_t depth);

// Skips an unknown field, whose tag was just read, and keeps it.
LifelineStep lifeline_keep_unknown(LifelineDecoder *decoder, LifelineScope *scope, uint32_t tag);

// Keeps, as varint fields, the numbers in the packed field `payload` that its closed enum does not declare. With a tag
// each, they take `size` bytes.
LifelineStep lifeline_keep_unknown_numbers(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload, size_t size);

// MARK: Values

// A varint as the bits of a LIFELINE_TYPE in a struct. Types of 32 bits have theirs in the low half.
static inline uint64_t lifeline_from_wire(int type, uint64_t value) {
    switch (type) {
        case LIFELINE_TYPE_BOOL:
            return value != 0;
        case LIFELINE_TYPE_SINT32:
            return lifeline_unzigzag32((uint32_t)value);
        case LIFELINE_TYPE_SINT64:
            return lifeline_unzigzag64(value);
        default:
            return value;
    }
}

// Reads one number of the field's type, whose wire type is `wire_type`.
static inline LifelineStatus lifeline_read_scalar(
    LifelineInput *input, const LifelineField *field, uint32_t wire_type, uint64_t *bits) {
    if (wire_type == LIFELINE_WIRE_VARINT) {
        uint64_t value = 0;
        LifelineStatus status = lifeline_read_varint(input, &value);
        *bits = lifeline_from_wire(field->type, value);
        return status;
    }
    size_t size = lifeline_value_size(field);  // as on the wire
    if (lifeline_left(input) < size) return LIFELINE_TRUNCATED;
    *bits = lifeline_load_scalar(input->next, size);
    input->next += size;
    return LIFELINE_OK;
}

// Reads a string or bytes into `value`, which points into the input from then on.
static inline LifelineStep lifeline_decode_bytes(
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

LIFELINE_ASSUME_NONNULL_END

#endif
