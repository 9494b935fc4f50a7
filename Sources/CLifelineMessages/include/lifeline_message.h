// Decoding, encoding, copying and comparing the structs that tables describe.
#ifndef LIFELINE_MESSAGE_H
#define LIFELINE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lifeline_arena.h"
#include "lifeline_table.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef LIFELINE_ENUM(LifelineStatus, int32_t) {
    LIFELINE_OK = 0,
    LIFELINE_TRUNCATED,           // the input ends inside a field
    LIFELINE_MALFORMED_VARINT,    // more than ten bytes, or over 64 bits
    LIFELINE_INVALID_TAG,         // field number 0, wire type 6 or 7, or a tag over 32 bits
    LIFELINE_UNMATCHED_GROUP,     // an end-group tag without its start, or of another field
    LIFELINE_INVALID_LENGTH,      // a packed field of fixed-size numbers whose length is no multiple of theirs
    LIFELINE_INVALID_UTF8,
    LIFELINE_TOO_DEEP,
    LIFELINE_OUT_OF_MEMORY,       // the arena's budget is exhausted, or malloc failed
    LIFELINE_MISSING_REQUIRED,
    LIFELINE_TOO_LARGE,           // an encoded message of more than INT32_MAX bytes
    LIFELINE_NO_ROOM,             // the caller's buffer is full
} LifelineStatus;

// Where and why decoding or encoding stopped.
typedef struct LifelineFailure {
    LifelineStatus status;
    size_t offset;                                  // decoding: of the field's tag, in the whole input
    uint32_t field_number;                          // 0 when it concerns no field
    const LifelineMessageTable *_Nullable message;  // the message type that was being read or written
} LifelineFailure;

// A new message with every field absent. NULL when the arena's budget is exhausted.
void *_Nullable lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena);

// Makes `*count` bytes at `*data`, a string or bytes field, a copy of `new_count` bytes: where the old ones are, if
// there is room for them, else in `arena`. False, with nothing changed, when the arena's budget is exhausted.
bool lifeline_bytes_assign(
    LifelineArena *arena, size_t *count, uint8_t *_Nullable *_Nonnull data, const uint8_t *_Nullable new_bytes,
    size_t new_count);

typedef struct LifelineDecodeOptions {
    uint32_t maximum_depth;      // how many messages and groups may stand inside each other below the first
    uint32_t budget;             // lifeline_message_parse: the arena's, for the time of the call
    bool accept_malformed_text;  // strings that are not UTF-8 are no failure
} LifelineDecodeOptions;

// Bytes that must be readable behind the input of the decoder, whatever they hold, so that it can load eight bytes at
// once without asking how many are left. It does not take them for input.
enum { LIFELINE_INPUT_SLOP = 16 };

// Merges the encoded message `bytes` into `message`, as the protobuf specification says: repeated fields are appended
// to, submessages merged, the last of the others wins, and fields that the table does not know are kept.
// LIFELINE_INPUT_SLOP readable bytes must follow the `count` bytes of input.
// Strings, bytes and unknown fields of `message` point into `bytes`, which must live as long as the arena; but unknown
// numbers of a packed enum are in the arena. Unknown fields that follow each other share one record: the first one's
// number and wire type, and the bytes of them all.
// The cost is linear in `count` (n log n for entries of maps that arrive unsorted). On failure `message` holds a
// valid, unspecified part of the input.
//
// What a byte of input can take from the arena at worst, before blocks are rounded up: the larger of 50 and S / 2 + 20
// bytes, where S is the size of the largest struct that a table reachable from `table` describes. (An empty element of
// a repeated message field is two bytes; it takes a struct and, in arrays that double, the room of up to four
// pointers, and one more where a map is sorted.) The arena's budget is what bounds it for good.
bool lifeline_message_decode(
    const LifelineMessageTable *table, void *message, const uint8_t *_Nullable bytes, size_t count,
    LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure);

// Bytes of memory for lifeline_message_parse and an input of `count` bytes, to be allocated together with `overhead`
// bytes of the caller's: for a copy of the input, the root, and most of what comes below it. Measured on messages of a
// chat, that is 0.5 to 1.6 times the input; of large messages, most of the input is often text or bytes. What does not
// fit goes into small blocks.
static inline size_t lifeline_message_parse_size(const LifelineMessageTable *table, size_t count, size_t overhead) {
    size_t below = count / 4 + (count < 1024 ? count : 1024);
    size_t size = ((count + 7) & ~(size_t)7) + ((table->size + 7) & ~(size_t)7) + ((below + 23) & ~(size_t)7);
    // What malloc answers from its cache in glibc. To go a little over that takes longer than a block more, if it comes
    // to that. Only `below` is cut.
    size_t cached = 1032 - overhead;
    return size > cached && size <= cached + 128 && below >= 128 ? cached : size;
}

// Starts `arena` in `memory` (8-aligned), of the size that lifeline_message_parse_size says, with a copy of `bytes`,
// and decodes that as a new message. The arena takes no more than its budget in `options`. NULL on failure; the arena
// is to be destroyed then too.
void *_Nullable lifeline_message_parse(
    const LifelineMessageTable *table, const uint8_t *_Nullable bytes, size_t count, LifelineArena *arena,
    void *memory, size_t size, const LifelineDecodeOptions *options, LifelineFailure *failure);

// The same without tail calls, which is what lifeline_message_decode does too where the compiler has none. Here for
// tests, which hold the two against each other.
bool lifeline_message_decode_plain(
    const LifelineMessageTable *table, void *message, const uint8_t *_Nullable bytes, size_t count,
    LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure);

// Copying, comparing and looking for required fields go as deep as the message does, on the stack: what was decoded is
// no deeper than its options allowed.

// A deep copy, strings and unknown fields included, in `arena`. NULL when the arena's budget is exhausted.
void *_Nullable lifeline_message_copy(const LifelineMessageTable *table, const void *message, LifelineArena *arena);

// Bytes that lifeline_message_copy takes from its arena.
size_t lifeline_message_copy_size(const LifelineMessageTable *table, const void *message);

// Whether both have the same fields present with the same values (floating-point numbers compared by their bits) and
// the same unknown fields in the same order.
bool lifeline_message_equal(const LifelineMessageTable *table, const void *left, const void *right);

// Whether a `required` field is absent in `message` or below it; `failure` tells the first one.
bool lifeline_message_missing_required(
    const LifelineMessageTable *table, const void *message, LifelineFailure *failure);

// A buffer that is filled from its end towards its start.
typedef struct LifelineEncoder {
    uint8_t *_Nullable memory;
    size_t capacity;
    size_t start;      // the encoded bytes are memory[start..<capacity]
    bool owns_memory;  // it was allocated with malloc, in place of the caller's
    bool can_grow;
} LifelineEncoder;

// Bytes that an encoder which can not grow may leave over: it asks for the room of any short field at once.
enum { LIFELINE_ENCODER_SURPLUS = 88 };

// Starts with `memory`, which stays the caller's. When it is full, the encoder goes on in memory of its own if it can
// grow; else encoding fails with LIFELINE_NO_ROOM, which it may do as soon as less than LIFELINE_ENCODER_SURPLUS bytes
// are left over.
static inline void lifeline_encoder_init(
    LifelineEncoder *encoder, void *_Nullable memory, size_t capacity, bool can_grow) {
    static uint8_t nothing;  // so that there is always a pointer to count from
    encoder->memory = memory != NULL ? (uint8_t *)memory : &nothing;
    encoder->capacity = capacity;
    encoder->start = capacity;
    encoder->owns_memory = false;
    encoder->can_grow = can_grow;
}

// Frees the memory of the encoder's own.
void lifeline_encoder_destroy(LifelineEncoder *encoder);

// Writes `message` before what the encoder holds already, with its length as a varint in front when `delimited`. Fields
// are written in the order of their numbers, unknown fields last. Nothing is checked but depth and size. A map's entry
// without its message, which is written as an empty one, does not count as depth: what was decoded can be encoded. On
// failure the encoder holds what it held before.
bool lifeline_message_encode(
    const LifelineMessageTable *table, const void *message, bool delimited, uint32_t maximum_depth,
    LifelineEncoder *encoder, LifelineFailure *failure);

LIFELINE_ASSUME_NONNULL_END

#endif
