// Decodes a message's fields with tail calls: each form of field has a handler, which reads one field and jumps to the
// handler of the next. The jump replaces a loop around a switch. The state stays in registers from field to field, a
// handler needs no stack frame, and the processor predicts the successor of each handler separately. This takes about
// half the time of the plain path.
//
// A handler reads only the common form of its field. It leaves anything else (a tag that shares the entry, a length
// over two bytes, a full array, an error) to `decode_any`, without a visible change; that reads the field again by the
// plain path. So every error is found and reported in one place.
//
// Invariant: next <= end. Up to LIFELINE_INPUT_SLOP bytes after the end may be loaded, but are never stored.
#include "decoder.h"

#if defined(LIFELINE_HAS_TAIL_CALLS)

#include "array.h"
#include "map_order.h"

// All registers are arguments, and none has to be saved, as a handler that ends with a jump restores none. A handler is
// not inlined into another, which would then have to save registers across its calls.
#define HANDLER static __attribute__((preserve_none, noinline)) bool
#define PARAMETERS                                                                                      \
    const uint8_t *next, uint8_t *message, const LifelineMessageTable *table, LifelineDecoder *decoder, \
        LifelineArena *arena, const uint8_t *end, uint64_t entry, uint64_t tag
#define ARGUMENTS next, message, table, decoder, arena, end, entry, tag
#define CONTINUE_WITH(handler) __attribute__((musttail)) return handler(ARGUMENTS)
#define NEVER_INLINE static __attribute__((noinline))

typedef __attribute__((preserve_none)) bool Handler(PARAMETERS);

static Handler *const handlers[LIFELINE_HANDLER_COUNT];  // at the end

// Jumps to the handler of the field at `next`, if there is one.
#define CONTINUE()                                                     \
    do {                                                               \
        if (next == end) return true;                                  \
        uint16_t first_bytes;                                          \
        memcpy(&first_bytes, next, sizeof first_bytes);                \
        tag = first_bytes;                                             \
        entry = table->dispatch[(tag >> 3) % LIFELINE_DISPATCH_COUNT]; \
        CONTINUE_WITH(handlers[entry >> 56]);                          \
    } while (0)

// The parts of an entry: see LIFELINE_DISPATCH.
LIFELINE_ALWAYS_INLINE bool matches(uint64_t entry, uint64_t tag, size_t tag_length) {
    return tag_length == 1 ? (uint8_t)entry == (uint8_t)tag : (uint16_t)entry == (uint16_t)tag;
}

LIFELINE_ALWAYS_INLINE uint8_t *value_place(uint8_t *message, uint64_t entry) {
    return message + (uint16_t)(entry >> 16);
}

LIFELINE_ALWAYS_INLINE uint8_t *quantifier_place(uint8_t *message, uint64_t entry) {
    return message + (uint16_t)(entry >> 32);
}

LIFELINE_ALWAYS_INLINE uint8_t detail(uint64_t entry) {
    return (uint8_t)(entry >> 48);
}

// MARK: Any field

NEVER_INLINE const uint8_t *_Nullable decode_by_plain_path(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const uint8_t *next,
    const uint8_t *end) {
    LifelineScope scope = {.table = table, .message = message, .input = {.next = next, .end = end}};
    return lifeline_decode_field(decoder, &scope) ? scope.input.next : NULL;
}

HANDLER decode_any(PARAMETERS) {
    next = decode_by_plain_path(decoder, table, message, next, end);
    if (next == NULL) return false;
    CONTINUE();
}

HANDLER decode_first(PARAMETERS) {
    CONTINUE();
}

bool lifeline_decode_fields_with_tail_calls(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, LifelineInput input) {
    return decode_first(input.next, message, table, decoder, decoder->arena, input.end, 0, 0);
}

// MARK: Values

// Text that is not all ASCII: a kind only for this file, which is not in tables.
enum { LIFELINE_KIND_LETTERS = LIFELINE_KIND_MESSAGE + 1 };

typedef struct Value {
    uint64_t bits;         // of a scalar; of bytes, their number
    const uint8_t *bytes;  // of strings and bytes
} Value;

// The type whose values are stored as those of a kind.
LIFELINE_ALWAYS_INLINE int type_of(int kind) {
    switch (kind) {
        case LIFELINE_KIND_VARINT32:
            return LIFELINE_TYPE_UINT32;
        case LIFELINE_KIND_VARINT64:
            return LIFELINE_TYPE_UINT64;
        case LIFELINE_KIND_BOOL:
            return LIFELINE_TYPE_BOOL;
        case LIFELINE_KIND_SINT32:
            return LIFELINE_TYPE_SINT32;
        case LIFELINE_KIND_SINT64:
            return LIFELINE_TYPE_SINT64;
        case LIFELINE_KIND_FIXED32:
            return LIFELINE_TYPE_FIXED32;
        case LIFELINE_KIND_FIXED64:
            return LIFELINE_TYPE_FIXED64;
        default:
            return LIFELINE_TYPE_BYTES;
    }
}

LIFELINE_ALWAYS_INLINE size_t value_size(int kind) {
    return lifeline_type_size(type_of(kind));
}

// These return the place after the value, or NULL to leave the field to decode_any.

LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable read_varint(const uint8_t *next, const uint8_t *end, uint64_t *value) {
    if (*next < 0x80) {
        *value = *next;
        next += 1;
    } else {
        next = lifeline_read_long_varint(next, value);
        if (next == NULL) return NULL;
    }
    return next <= end ? next : NULL;
}

LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable read_payload(const uint8_t *next, const uint8_t *end, size_t *length) {
    size_t first = next[0];
    if (first < 0x80) {
        *length = first;
        next += 1;
    } else {
        size_t second = next[1];
        if (second >= 0x80) return NULL;
        *length = (first & 0x7F) | second << 7;
        next += 2;
    }
    return end - next >= (ptrdiff_t)*length ? next : NULL;
}

LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable read_fixed(
    const uint8_t *next, const uint8_t *end, size_t size, uint64_t *value) {
    if (end - next < (ptrdiff_t)size) return NULL;
    *value = lifeline_load_scalar(next, size);
    return next + size;
}

LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable read_bytes(
    int kind, const uint8_t *next, const uint8_t *end, Value *value) {
    size_t length;
    next = read_payload(next, end, &length);
    if (next == NULL) return NULL;
    if (kind == LIFELINE_KIND_UTF8 && !lifeline_is_ascii(next, length)) return NULL;
    if (kind == LIFELINE_KIND_LETTERS && !lifeline_is_utf8(next, length)) return NULL;
    *value = (Value){.bits = length, .bytes = next};
    return next + length;
}

LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable read_value(
    int kind, const uint8_t *next, const uint8_t *end, Value *value) {
    switch (kind) {
        case LIFELINE_KIND_FIXED32:
        case LIFELINE_KIND_FIXED64:
            return read_fixed(next, end, value_size(kind), &value->bits);
        case LIFELINE_KIND_BYTES:
        case LIFELINE_KIND_UTF8:
        case LIFELINE_KIND_LETTERS:
            return read_bytes(kind, next, end, value);
        default:
            return read_varint(next, end, &value->bits);
    }
}

LIFELINE_ALWAYS_INLINE void store_value(int kind, uint8_t *place, Value value) {
    int type = type_of(kind);
    if (type == LIFELINE_TYPE_BYTES) {
        lifeline_store_bytes(place, value.bytes, value.bits);
    } else {
        lifeline_store_scalar(place, value_size(kind), lifeline_from_wire(type, value.bits));
    }
}

// MARK: Scalars, strings and bytes

// The place for one more element; NULL when the array is full.
LIFELINE_ALWAYS_INLINE uint8_t *_Nullable element_place(
    LifelineArena *arena, uint8_t *message, uint64_t entry, size_t element_size) {
    size_t count;
    memcpy(&count, quantifier_place(message, entry), sizeof count);
    uint8_t *elements = lifeline_load_pointer(value_place(message, entry));
    if (elements != NULL) {
        return count < lifeline_array_header(elements)->capacity ? elements + count * element_size : NULL;
    }
    elements = lifeline_first_elements(arena, 1, element_size);
    if (elements != NULL) lifeline_store_pointer(value_place(message, entry), elements);
    return elements;
}

LIFELINE_ALWAYS_INLINE void count_element(uint8_t *message, uint64_t entry) {
    size_t count;
    memcpy(&count, quantifier_place(message, entry), sizeof count);
    count += 1;
    memcpy(quantifier_place(message, entry), &count, sizeof count);
}

// Reads a field and stores it. Returns the place after it, or NULL, with nothing changed, to leave it to decode_any.
LIFELINE_ALWAYS_INLINE const uint8_t *_Nullable decode_value(
    int kind, int shape, const uint8_t *value_start, const uint8_t *end, uint8_t *message, LifelineArena *arena,
    uint64_t entry) {
    Value value;
    const uint8_t *after = read_value(kind, value_start, end, &value);
    if (after == NULL) return NULL;
    if (shape == LIFELINE_SHAPE_REPEATED) {
        uint8_t *place = element_place(arena, message, entry, value_size(kind));
        if (place == NULL) return NULL;
        store_value(kind, place, value);
        count_element(message, entry);
    } else {
        store_value(kind, value_place(message, entry), value);
        uint32_t mark = detail(entry);
        if (shape == LIFELINE_SHAPE_MARKED) memcpy(quantifier_place(message, entry), &mark, sizeof mark);
    }
    return after;
}

NEVER_INLINE bool decode_packed(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    LifelineInput payload, const uint8_t *field_start) {
    LifelineScope scope = {.table = table, .message = message, .input = payload, .field_start = field_start};
    if (lifeline_decode_packed(decoder, &scope, field, payload) != LIFELINE_STEP_FAILED) return true;
    return lifeline_locate_failure(decoder, table, field->number, field_start);
}

#define DEFINE_VALUE_HANDLER(kind, shape, tag_length, otherwise)                                          \
    HANDLER decode_##kind##_##shape##_##tag_length(PARAMETERS) {                                          \
        if (!matches(entry, tag, tag_length)) CONTINUE_WITH(decode_any);                                  \
        const uint8_t *after = decode_value(                                                              \
            LIFELINE_KIND_##kind, LIFELINE_SHAPE_##shape, next + tag_length, end, message, arena, entry); \
        if (after == NULL) CONTINUE_WITH(otherwise);                                                      \
        next = after;                                                                                     \
        CONTINUE();                                                                                       \
    }

#define DEFINE_VALUE_HANDLERS(kind)                     \
    DEFINE_VALUE_HANDLER(kind, PLAIN, 1, decode_any)    \
    DEFINE_VALUE_HANDLER(kind, PLAIN, 2, decode_any)    \
    DEFINE_VALUE_HANDLER(kind, MARKED, 1, decode_any)   \
    DEFINE_VALUE_HANDLER(kind, MARKED, 2, decode_any)   \
    DEFINE_VALUE_HANDLER(kind, REPEATED, 1, decode_any) \
    DEFINE_VALUE_HANDLER(kind, REPEATED, 2, decode_any)

DEFINE_VALUE_HANDLERS(VARINT32)
DEFINE_VALUE_HANDLERS(VARINT64)
DEFINE_VALUE_HANDLERS(BOOL)
DEFINE_VALUE_HANDLERS(SINT32)
DEFINE_VALUE_HANDLERS(SINT64)
DEFINE_VALUE_HANDLERS(FIXED32)
DEFINE_VALUE_HANDLERS(FIXED64)
DEFINE_VALUE_HANDLERS(BYTES)

// Text that is not all ASCII goes on to handlers that call the validator. The first handlers make no call, for which
// they would have to save registers each time.
DEFINE_VALUE_HANDLERS(LETTERS)
DEFINE_VALUE_HANDLER(UTF8, PLAIN, 1, decode_LETTERS_PLAIN_1)
DEFINE_VALUE_HANDLER(UTF8, PLAIN, 2, decode_LETTERS_PLAIN_2)
DEFINE_VALUE_HANDLER(UTF8, MARKED, 1, decode_LETTERS_MARKED_1)
DEFINE_VALUE_HANDLER(UTF8, MARKED, 2, decode_LETTERS_MARKED_2)
DEFINE_VALUE_HANDLER(UTF8, REPEATED, 1, decode_LETTERS_REPEATED_1)
DEFINE_VALUE_HANDLER(UTF8, REPEATED, 2, decode_LETTERS_REPEATED_2)

#define DEFINE_PACKED_HANDLER(tag_length)                                               \
    HANDLER decode_packed_##tag_length(PARAMETERS) {                                    \
        if (!matches(entry, tag, tag_length)) CONTINUE_WITH(decode_any);                \
        size_t length;                                                                  \
        const uint8_t *payload = read_payload(next + tag_length, end, &length);         \
        if (payload == NULL) CONTINUE_WITH(decode_any);                                 \
        const LifelineField *field = &table->fields[detail(entry)];                     \
        LifelineInput values = {.next = payload, .end = payload + length};              \
        if (!decode_packed(decoder, table, message, field, values, next)) return false; \
        next = payload + length;                                                        \
        CONTINUE();                                                                     \
    }

DEFINE_PACKED_HANDLER(1)
DEFINE_PACKED_HANDLER(2)

// MARK: Submessages

// A submessage with every field absent; NULL when the arena's block has no room.
LIFELINE_ALWAYS_INLINE uint8_t *_Nullable create_message(LifelineArena *arena, const LifelineMessageTable *table) {
    size_t size = lifeline_rounded_up(table->size);
    uint8_t *message = lifeline_arena_take(arena, size);
    if (message == NULL) return NULL;
    lifeline_clear_message(table, message, size);
    return message;
}

// The place for the pointer to a new submessage; NULL when there is a submessage already, or no room.
LIFELINE_ALWAYS_INLINE uint8_t *_Nullable submessage_place(
    int shape, LifelineArena *arena, uint8_t *message, uint64_t entry, const LifelineField *field) {
    if (shape == LIFELINE_SHAPE_REPEATED) return element_place(arena, message, entry, sizeof(void *));
    int presence = shape == LIFELINE_SHAPE_MARKED ? LIFELINE_PRESENCE_ONEOF : LIFELINE_PRESENCE_POINTER;
    bool is_present = lifeline_is_present_as(presence, LIFELINE_TYPE_MESSAGE, field, message);
    return is_present ? NULL : value_place(message, entry);
}

LIFELINE_ALWAYS_INLINE void mark_submessage(int shape, uint8_t *message, uint64_t entry, const LifelineField *field) {
    if (shape == LIFELINE_SHAPE_REPEATED) count_element(message, entry);
    if (shape == LIFELINE_SHAPE_MARKED) {
        memcpy(quantifier_place(message, entry), &field->number, sizeof field->number);
    }
}

#define DEFINE_MESSAGE_HANDLER(shape, tag_length)                                                    \
    HANDLER decode_MESSAGE_##shape##_##tag_length(PARAMETERS) {                                      \
        if (!matches(entry, tag, tag_length) || decoder->depth == 0) CONTINUE_WITH(decode_any);      \
        size_t length;                                                                               \
        const uint8_t *payload = read_payload(next + tag_length, end, &length);                      \
        if (payload == NULL) CONTINUE_WITH(decode_any);                                              \
        const LifelineField *field = &table->fields[detail(entry)];                                  \
        uint8_t *place = submessage_place(LIFELINE_SHAPE_##shape, arena, message, entry, field);     \
        if (place == NULL) CONTINUE_WITH(decode_any);                                                \
        uint8_t *child = create_message(arena, field->message);                                      \
        if (child == NULL) CONTINUE_WITH(decode_any);                                                \
        lifeline_store_pointer(place, child);                                                        \
        mark_submessage(LIFELINE_SHAPE_##shape, message, entry, field);                              \
        next = payload + length;                                                                     \
        decoder->depth -= 1;                                                                         \
        if (!decode_first(payload, child, field->message, decoder, arena, next, 0, 0)) return false; \
        decoder->depth += 1;                                                                         \
        CONTINUE();                                                                                  \
    }

DEFINE_MESSAGE_HANDLER(PLAIN, 1)
DEFINE_MESSAGE_HANDLER(PLAIN, 2)
DEFINE_MESSAGE_HANDLER(MARKED, 1)
DEFINE_MESSAGE_HANDLER(MARKED, 2)
DEFINE_MESSAGE_HANDLER(REPEATED, 1)
DEFINE_MESSAGE_HANDLER(REPEATED, 2)

NEVER_INLINE bool append_entry(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    void *map_entry, const uint8_t *field_start) {
    LifelineStep step = lifeline_append_entry(decoder, table, message, field, map_entry);
    if (step != LIFELINE_STEP_FAILED) return true;
    return lifeline_locate_failure(decoder, table, field->number, field_start);
}

#define DEFINE_MAP_HANDLER(tag_length)                                                                   \
    HANDLER decode_map_##tag_length(PARAMETERS) {                                                        \
        if (!matches(entry, tag, tag_length) || decoder->depth == 0) CONTINUE_WITH(decode_any);          \
        size_t length;                                                                                   \
        const uint8_t *payload = read_payload(next + tag_length, end, &length);                          \
        if (payload == NULL) CONTINUE_WITH(decode_any);                                                  \
        uint8_t *place = element_place(arena, message, entry, sizeof(void *));                           \
        if (place == NULL) CONTINUE_WITH(decode_any);                                                    \
        const LifelineField *field = &table->fields[detail(entry)];                                      \
        uint8_t *map_entry = create_message(arena, field->message);                                      \
        if (map_entry == NULL) CONTINUE_WITH(decode_any);                                                \
        decoder->depth -= 1;                                                                             \
        if (!decode_first(payload, map_entry, field->message, decoder, arena, payload + length, 0, 0)) { \
            return false;                                                                                \
        }                                                                                                \
        decoder->depth += 1;                                                                             \
        bool is_first = place == lifeline_load_pointer(value_place(message, entry));                     \
        if (is_first || lifeline_entries_ascend(field, place - sizeof(void *), map_entry)) {             \
            lifeline_store_pointer(place, map_entry);                                                    \
            count_element(message, entry);                                                               \
        } else if (!append_entry(decoder, table, message, field, map_entry, next)) {                     \
            return false;                                                                                \
        }                                                                                                \
        next = payload + length;                                                                         \
        CONTINUE();                                                                                      \
    }

DEFINE_MAP_HANDLER(1)
DEFINE_MAP_HANDLER(2)

// MARK: The handlers by number

// The handlers of one shape, for tags of one byte and of two.
#define NUMBERED(kind, shape, handler)                                                 \
    [LIFELINE_HANDLER(LIFELINE_KIND_##kind, LIFELINE_SHAPE_##shape, 0)] = handler##_1, \
    [LIFELINE_HANDLER(LIFELINE_KIND_##kind, LIFELINE_SHAPE_##shape, 1)] = handler##_2

#define NUMBERED_SHAPES(kind)                           \
    NUMBERED(kind, PLAIN, decode_##kind##_PLAIN),       \
        NUMBERED(kind, MARKED, decode_##kind##_MARKED), \
        NUMBERED(kind, REPEATED, decode_##kind##_REPEATED)

#define NUMBERED_SCALAR_SHAPES(kind) NUMBERED_SHAPES(kind), NUMBERED(kind, PACKED, decode_packed)

static Handler *const handlers[LIFELINE_HANDLER_COUNT] = {
    [0] = decode_any,
    NUMBERED_SCALAR_SHAPES(VARINT32),
    NUMBERED_SCALAR_SHAPES(VARINT64),
    NUMBERED_SCALAR_SHAPES(BOOL),
    NUMBERED_SCALAR_SHAPES(SINT32),
    NUMBERED_SCALAR_SHAPES(SINT64),
    NUMBERED_SCALAR_SHAPES(FIXED32),
    NUMBERED_SCALAR_SHAPES(FIXED64),
    NUMBERED_SHAPES(BYTES),  // without a packed form, which no table gives them
    NUMBERED_SHAPES(UTF8),
    NUMBERED_SHAPES(MESSAGE),
    NUMBERED(MESSAGE, MAP, decode_map),
};

#endif
