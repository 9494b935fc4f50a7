// What the decoder's files share.
//
// decode.c reads messages and singular fields, decode_repeated.c repeated ones, decode_map.c entries of maps, and
// decode_unknown.c whatever the table does not know: together they are the plain path, which can read everything.
// decode_tail.c reads the common forms of fields faster, and leaves the others to the plain path, a field at a time.
#ifndef LIFELINE_DECODER_H
#define LIFELINE_DECODER_H

#include "fields.h"
#include "lifeline_array.h"
#include "lifeline_message.h"
#include "tail_calls.h"
#include "varint.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// A map field whose entries did not arrive in order. Each is listed once, however often it is added to.
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
    uint32_t depth;  // how many messages and groups may still stand inside each other
    bool accept_malformed_text;
    LifelineDecodeFields *decode_fields;  // how submessages are read
    const uint8_t *_Nullable bytes;  // the whole input: offsets count from here
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

// What became of a field whose number the table knows.
typedef enum LifelineStep {
    LIFELINE_STEP_FAILED,   // the failure's status is set; lifeline_decode_field adds where it happened
    LIFELINE_STEP_STORED,   // the input stands behind the field
    LIFELINE_STEP_UNKNOWN,  // nothing was stored: keep it with the unknown fields
} LifelineStep;

static inline LifelineStep lifeline_fail(LifelineDecoder *decoder, LifelineStatus status) {
    decoder->failure->status = status;
    return LIFELINE_STEP_FAILED;
}

// Adds to a failure, of which the status is set, where it happened. Returns false.
bool lifeline_locate_failure(
    LifelineDecoder *decoder, const LifelineMessageTable *table, uint32_t field_number, const uint8_t *field_start);

// Reads the field that the scope's input begins with, whatever it is. On failure the decoder's failure is set.
bool lifeline_decode_field(LifelineDecoder *decoder, LifelineScope *scope);

LifelineDecodeFields lifeline_decode_fields_plain;

#if defined(LIFELINE_HAS_TAIL_CALLS)
LifelineDecodeFields lifeline_decode_fields_with_tail_calls;
#endif

// Finds the payload of a submessage, when one may stand at this depth. To be called before the submessage is created.
bool lifeline_enter_child(LifelineDecoder *decoder, LifelineScope *scope, LifelineInput *payload);

// Reads the encoded submessage `payload` into `child`, one level further down.
LifelineStep lifeline_decode_child(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *child, LifelineInput payload);

// Reads a string or bytes into `value`, which points into the input from then on.
LifelineStep lifeline_decode_bytes(
    LifelineDecoder *decoder, LifelineInput *input, const LifelineField *field, void *value);

LifelineStep lifeline_decode_repeated(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, uint32_t wire_type);

// The values of a packed field. `payload` is not empty.
LifelineStep lifeline_decode_packed(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload);

LifelineStep lifeline_decode_map_entry(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field);

// Whether the entry that `previous` points to has a lower key than `map_entry`.
bool lifeline_entries_ascend(const LifelineField *field, const void *previous, const void *map_entry);

// Inserts an entry that was read whole.
LifelineStep lifeline_append_entry(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    void *entry);

// Sorts the maps that need it by key and keeps the last entry of each key.
bool lifeline_sort_maps(LifelineDecoder *decoder);

// Room for `more` elements behind those that a repeated field has; the caller raises the count once they are there.
// NULL when the arena's budget is exhausted.
void *_Nullable lifeline_append(LifelineDecoder *decoder, void *message, const LifelineField *field, size_t more);

// Moves past the value of a field, of which the tag was just read, with groups at most `depth` deep.
LifelineStatus lifeline_skip_value(LifelineInput *input, uint32_t tag, uint32_t depth);

// Skips an unknown field, of which the tag was just read, and keeps it.
LifelineStep lifeline_keep_unknown(LifelineDecoder *decoder, LifelineScope *scope, uint32_t tag);

// Keeps, as varint fields, the numbers in the packed field `payload` that its closed enum does not know.
// `size` bytes is what they take with a tag each.
LifelineStep lifeline_keep_unknown_numbers(
    LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field, LifelineInput payload, size_t size);

// A varint's value as the bits that the struct holds; of 32-bit types the low half counts.
static inline uint64_t lifeline_from_wire(const LifelineField *field, uint64_t value) {
    switch (field->type) {
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
        *bits = lifeline_from_wire(field, value);
        return status;
    }
    size_t size = wire_type == LIFELINE_WIRE_FIXED64 ? 8 : 4;
    if (lifeline_left(input) < size) return LIFELINE_TRUNCATED;
    *bits = lifeline_load_scalar(input->next, size);
    input->next += size;
    return LIFELINE_OK;
}

LIFELINE_ASSUME_NONNULL_END

#endif
