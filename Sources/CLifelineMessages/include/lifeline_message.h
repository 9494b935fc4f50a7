// Decodes, encodes, copies and compares the structs that tables describe.
#ifndef LIFELINE_MESSAGE_H
#define LIFELINE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lifeline_arena.h"
#include "lifeline_table.h"
#include "lifeline_types.h"

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
    // In JSON, and for what JSON cannot hold:
    LIFELINE_SYNTAX,              // not JSON
    LIFELINE_WRONG_KIND,          // a value of another kind than the field's
    LIFELINE_OUT_OF_RANGE,        // a number or a time that the field, or JSON, cannot hold
    LIFELINE_UNKNOWN_FIELD,
    LIFELINE_DUPLICATE_FIELD,     // also of a map's key, and a second member of a oneof
    LIFELINE_UNKNOWN_ENUM_VALUE,
    LIFELINE_UNKNOWN_MESSAGE,     // a google.protobuf.Any holds a message whose type is not known
} LifelineStatus;

// Where and why decoding or encoding stopped.
typedef struct LifelineFailure {
    LifelineStatus status;
    size_t offset;                                  // decoding: of the field's tag, in the whole input
    uint32_t field_number;                          // 0 when no field is concerned
    const LifelineMessageTable *_Nullable message;  // the message type that was being read or written
} LifelineFailure;

// A new message with every field absent. NULL when the arena's budget is exhausted.
void *_Nullable lifeline_message_create(const LifelineMessageTable *table, LifelineArena *arena);

// Sets a string or bytes field, `*count` bytes at `*data`, to a copy of `new_count` bytes: in place of the old ones if
// they fit there, else in new memory of `arena`. Returns false and changes nothing when the arena's budget is
// exhausted.
bool lifeline_bytes_assign(
    LifelineArena *arena, size_t *count, uint8_t *_Nullable *_Nonnull data, const uint8_t *_Nullable new_bytes,
    size_t new_count);

typedef struct LifelineDecodeOptions {
    uint32_t maximum_depth;      // how many messages and groups may be nested below the first
    uint32_t budget;             // for lifeline_message_parse: the arena's budget during the call
    bool accept_malformed_text;  // accept strings that are not UTF-8
    // NULL to keep all unknown fields; else only those are kept that are extensions which these types know.
    const LifelineTypes *_Nullable kept_extensions;
} LifelineDecodeOptions;

// The number of bytes after the input that must be readable, whatever their content. The decoder loads eight or sixteen
// bytes at once without asking how many are left; it never takes the others for input.
enum { LIFELINE_INPUT_SLOP = 16 };

// Merges the encoded message `bytes` into `message`, as the protobuf specification says: repeated fields are appended
// to, submessages are merged, of other fields the last value wins, and unknown fields are kept. LIFELINE_INPUT_SLOP
// readable bytes must follow the `count` bytes of input.
//
// Strings, bytes and unknown fields of `message` point into `bytes`, which must live as long as the arena. (Unknown
// numbers of a packed enum are in the arena.) Unknown fields that follow each other share one record, with the number
// and the wire type of the first and the bytes of all.
//
// The cost is linear in `count`, and n log n for entries of maps that arrive unsorted. On failure `message` holds a
// valid, unspecified part of the input.
//
// The arena's budget bounds the memory. Without it, and before blocks are rounded up, a byte of input takes at most the
// larger of 50 and S / 2 + 20 bytes, where S is the size of the largest struct of a table that can be reached from
// `table`. (An empty element of a repeated message field has two bytes. It takes a struct, up to four pointers in
// arrays that double, and one more pointer when a map is sorted.) A group that has no end when decoding fails counts as
// one byte more.
bool lifeline_message_decode(
    const LifelineMessageTable *table, void *message, const uint8_t *_Nullable bytes, size_t count,
    LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure);

// The bytes of memory for lifeline_message_parse and an input of `count` bytes, which the caller allocates together
// with `overhead` bytes of its own. They hold a copy of the input, the root, and most of the objects below it. These
// took 0.5 to 1.6 times the input in messages of a chat, and less in large messages, which are often text or bytes for
// the most part. Small blocks take the objects that do not fit.
static inline size_t lifeline_message_parse_size(const LifelineMessageTable *table, size_t count, size_t overhead) {
    size_t below = count / 4 + (count < 1024 ? count : 1024);
    size_t size = ((count + 7) & ~(size_t)7) + ((table->size + 7) & ~(size_t)7) + ((below + 23) & ~(size_t)7);
    // The largest size that glibc's malloc answers from its cache. A slightly larger size takes longer than one more
    // block, if that is needed at all. Only `below` is cut.
    size_t cached = 1032 - overhead;
    return size > cached && size <= cached + 128 && below >= 128 ? cached : size;
}

// Starts `arena` in `memory`, which is 8-aligned and of lifeline_message_parse_size bytes, copies `bytes` there, and
// decodes them as a new message. The arena takes at most its budget in `options`. NULL on failure; the caller destroys
// the arena in that case too.
void *_Nullable lifeline_message_parse(
    const LifelineMessageTable *table, const uint8_t *_Nullable bytes, size_t count, LifelineArena *arena,
    void *memory, size_t size, const LifelineDecodeOptions *options, LifelineFailure *failure);

// The same as lifeline_message_decode, but without tail calls even if the compiler has them. Declared for tests, which
// compare the two.
bool lifeline_message_decode_plain(
    const LifelineMessageTable *table, void *message, const uint8_t *_Nullable bytes, size_t count,
    LifelineArena *arena, const LifelineDecodeOptions *options, LifelineFailure *failure);

// The following functions recurse as deep as the message. A decoded message is at most as deep as its options allowed.

// A deep copy in `arena`, with strings and unknown fields. NULL when the arena's budget is exhausted.
void *_Nullable lifeline_message_copy(const LifelineMessageTable *table, const void *message, LifelineArena *arena);

// A deep copy in `arena` of `count` elements of a repeated field or a map, at least one. NULL when the arena's budget
// is exhausted.
void *_Nullable lifeline_elements_copy(
    const LifelineField *field, const void *elements, size_t count, LifelineArena *arena);

// The bytes that lifeline_message_copy takes from its arena.
size_t lifeline_message_copy_size(const LifelineMessageTable *table, const void *message);

// Whether two texts, or values of bytes fields, are the same.
static inline bool lifeline_bytes_equal(
    const uint8_t *_Nullable left, size_t left_count, const uint8_t *_Nullable right, size_t right_count) {
    return left_count == right_count && (left_count == 0 || memcmp(left, right, left_count) == 0);
}

// Whether all bytes of a text are ASCII.
static inline bool lifeline_bytes_are_ascii(const uint8_t *_Nullable bytes, size_t count) {
    uint64_t bits = 0;
    if (count < sizeof bits) {
        for (size_t index = 0; index < count; index += 1) bits |= bytes[index];
    } else {
        uint64_t eight;
        for (size_t index = 0; index < count - sizeof eight; index += sizeof eight) {
            memcpy(&eight, bytes + index, sizeof eight);
            bits |= eight;
        }
        memcpy(&eight, bytes + count - sizeof eight, sizeof eight);
        bits |= eight;
    }
    return (bits & 0x8080808080808080) == 0;
}

// Whether both messages have the same fields present, with the same values, and the same unknown fields in the same
// order. NULL is a message with no field set. Floating-point numbers are compared by their bits.
bool lifeline_message_equal(
    const LifelineMessageTable *table, const void *_Nullable left, const void *_Nullable right);

// Whether a `required` field is absent in `message` or below it. `failure` then names the first one.
bool lifeline_message_missing_required(
    const LifelineMessageTable *table, const void *message, LifelineFailure *failure);

// A buffer that is filled from its end towards its start.
typedef struct LifelineEncoder {
    uint8_t *_Nullable memory;
    size_t capacity;
    size_t start;      // the encoded bytes are memory[start..<capacity]
    bool owns_memory;  // whether the memory is from malloc, and no longer the caller's
    bool can_grow;
} LifelineEncoder;

// The bytes that an encoder of fixed size may leave unused: it asks for enough room for any short field at once.
enum { LIFELINE_ENCODER_SURPLUS = 88 };

// Starts with `memory`, which the caller owns. When it is full, an encoder that can grow goes on in memory of its own.
// Else encoding fails with LIFELINE_NO_ROOM, which may happen once fewer than LIFELINE_ENCODER_SURPLUS bytes are left.
static inline void lifeline_encoder_init(
    LifelineEncoder *encoder, void *_Nullable memory, size_t capacity, bool can_grow) {
    static uint8_t nothing;  // for an encoder without memory: arithmetic needs a pointer
    encoder->memory = memory != NULL ? (uint8_t *)memory : &nothing;
    encoder->capacity = capacity;
    encoder->start = capacity;
    encoder->owns_memory = false;
    encoder->can_grow = can_grow;
}

// Frees the memory that the encoder owns, if any.
void lifeline_encoder_destroy(LifelineEncoder *encoder);

// Writes `message` in front of the bytes that the encoder holds, and its length as a varint in front of that when
// `delimited`. Fields are written in the order of their numbers, unknown fields last. Only depth and size are checked.
// An entry of a map that lacks its message is written with an empty one, which does not count as depth; so every
// decoded message can be encoded. On failure the encoder holds the same bytes as before.
bool lifeline_message_encode(
    const LifelineMessageTable *table, const void *message, bool delimited, uint32_t maximum_depth,
    LifelineEncoder *encoder, LifelineFailure *failure);

LIFELINE_ASSUME_NONNULL_END

#endif
