// Encoding fields that are there at most once.
//
// Each form of field (how it is there, and its type) has a handler, which decides whether the field is there, writes
// it, and goes on to the handler of the field before it. Where the compiler has tail calls, that is a jump: what is
// being written stays in registers from field to field, and the processor predicts each handler's successor by itself.
// Where it has none, handlers return to a loop, which calls the next one.
#include "encoder.h"
#include "tail_calls.h"

// The field that is being written, and the message's first field, before which nothing comes.
#define PARAMETERS                                                                              \
    uint8_t *place, const uint8_t *message, const LifelineField *field, LifelineWriter *writer, \
        const LifelineField *first
#define ARGUMENTS place, message, field, writer, first

#if defined(LIFELINE_HAS_TAIL_CALLS)
// Not inlined into another handler, which would have to keep registers over the calls that this one makes.
#define HANDLER static __attribute__((preserve_none, noinline)) uint8_t *_Nullable
typedef __attribute__((preserve_none)) uint8_t *_Nullable Handler(PARAMETERS);
#define CONTINUE_WITH(handler) __attribute__((musttail)) return handler(ARGUMENTS)
#define CONTINUE()                              \
    do {                                        \
        if (field == first) return place;       \
        field -= 1;                             \
        CONTINUE_WITH(handlers[field->form]);   \
    } while (0)
#else
#define HANDLER static uint8_t *_Nullable
typedef uint8_t *_Nullable Handler(PARAMETERS);
#define CONTINUE_WITH(handler) return handler(ARGUMENTS)
#define CONTINUE()   \
    do {             \
        (void)first; \
        return place; \
    } while (0)
#endif

enum { FORM_COUNT = LIFELINE_FORM(LIFELINE_PRESENCE_ALWAYS, LIFELINE_TYPE_SINT64) + 1 };

static Handler *const handlers[FORM_COUNT];  // at the end

static const uint8_t *value_of(const uint8_t *message, const LifelineField *field) {
    return message + field->offset;
}

static uint32_t quantifier_of(const uint8_t *message, const LifelineField *field) {
    return lifeline_load32(message + field->quantifier_offset);
}

static uint8_t *_Nullable fail_at(LifelineWriter *writer, const LifelineField *field) {
    // When a message inside this one failed, it has said where.
    if (writer->failure->message == NULL) writer->failure->field_number = field->number;
    return NULL;
}

// Makes room for what most fields take, and writes the field.
HANDLER make_room(PARAMETERS) {
    place = lifeline_writer_grow(writer, place, LIFELINE_ROOM_FOR_SHORT_STRING);
    if (place == NULL) return fail_at(writer, field);
    CONTINUE_WITH(handlers[field->form]);
}

// MARK: Numbers

#define PUT_NUMBER(TYPE, number)                                                                          \
    do {                                                                                                  \
        if (!lifeline_writer_has_room(writer, place, LIFELINE_ROOM_FOR_SCALAR)) CONTINUE_WITH(make_room); \
        place = lifeline_put_tag(lifeline_put_number(place, LIFELINE_TYPE_##TYPE, number), field);        \
        CONTINUE();                                                                                       \
    } while (0)

#define DEFINE_NUMBER_HANDLERS(TYPE)                                                              \
    HANDLER put_implicit_##TYPE(PARAMETERS) {                                                     \
        uint64_t number = lifeline_load_number(LIFELINE_TYPE_##TYPE, value_of(message, field));   \
        if (number == 0) CONTINUE();                                                              \
        PUT_NUMBER(TYPE, number);                                                                 \
    }                                                                                             \
    HANDLER put_flagged_##TYPE(PARAMETERS) {                                                      \
        if (quantifier_of(message, field) == 0) CONTINUE();                                       \
        PUT_NUMBER(TYPE, lifeline_load_number(LIFELINE_TYPE_##TYPE, value_of(message, field)));   \
    }                                                                                             \
    HANDLER put_oneof_##TYPE(PARAMETERS) {                                                        \
        if (quantifier_of(message, field) != field->number) CONTINUE();                           \
        PUT_NUMBER(TYPE, lifeline_load_number(LIFELINE_TYPE_##TYPE, value_of(message, field)));   \
    }                                                                                             \
    HANDLER put_always_##TYPE(PARAMETERS) {                                                       \
        PUT_NUMBER(TYPE, lifeline_load_number(LIFELINE_TYPE_##TYPE, value_of(message, field)));   \
    }

DEFINE_NUMBER_HANDLERS(BOOL)
DEFINE_NUMBER_HANDLERS(UINT32)
DEFINE_NUMBER_HANDLERS(INT32)
DEFINE_NUMBER_HANDLERS(SINT32)
DEFINE_NUMBER_HANDLERS(SINT64)
DEFINE_NUMBER_HANDLERS(UINT64)
DEFINE_NUMBER_HANDLERS(FIXED32)
DEFINE_NUMBER_HANDLERS(FIXED64)

// MARK: Strings and bytes

HANDLER put_long_string(PARAMETERS) {
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    place = lifeline_put_bytes(writer, place, bytes.data, bytes.len);
    if (place == NULL) return fail_at(writer, field);
    place = lifeline_put_tag(lifeline_put_varint(place, bytes.len), field);
    CONTINUE();
}

#define PUT_STRING(bytes)                                                                                       \
    do {                                                                                                        \
        if ((bytes).len > LIFELINE_SHORT_STRING) CONTINUE_WITH(put_long_string);                                \
        if (!lifeline_writer_has_room(writer, place, LIFELINE_ROOM_FOR_SHORT_STRING)) CONTINUE_WITH(make_room); \
        place = lifeline_put_tag(lifeline_put_short_string(place, bytes), field);                               \
        CONTINUE();                                                                                             \
    } while (0)

HANDLER put_implicit_BYTES(PARAMETERS) {
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    if (bytes.len == 0) CONTINUE();
    PUT_STRING(bytes);
}

HANDLER put_flagged_BYTES(PARAMETERS) {
    if (quantifier_of(message, field) == 0) CONTINUE();
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    PUT_STRING(bytes);
}

HANDLER put_oneof_BYTES(PARAMETERS) {
    if (quantifier_of(message, field) != field->number) CONTINUE();
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    PUT_STRING(bytes);
}

HANDLER put_always_BYTES(PARAMETERS) {
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    PUT_STRING(bytes);
}

// MARK: All fields of a message

// Writes the fields in front of `field`, down to `first`.
#if defined(LIFELINE_HAS_TAIL_CALLS)
HANDLER put_fields_before(PARAMETERS) {
    CONTINUE();
}
#else
static uint8_t *_Nullable put_fields_before(PARAMETERS) {
    while (place != NULL && field != first) {
        field -= 1;
        place = handlers[field->form](ARGUMENTS);
    }
    return place;
}
#endif

static uint8_t *_Nullable put_group(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message,
    const LifelineFieldGroup *group) {
    if (lifeline_is_zero(lifeline_at(message, group->offset), group->size)) return place;
    bool is_last = group + 1 == table->groups + table->group_count;
    uint32_t end = is_last ? table->field_count : group[1].first_field;
    return put_fields_before(
        place, message, table->fields + end, writer, table->fields + group->first_field);
}

// A message with unknown fields, or with so many fields that they are in groups.
static __attribute__((noinline)) uint8_t *_Nullable put_large_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message) {
    place = lifeline_put_unknown_fields(writer, place, message);
    if (place == NULL) return NULL;
    if (table->groups == NULL) {
        return put_fields_before(place, message, table->fields + table->field_count, writer, table->fields);
    }
    for (uint32_t index = table->group_count; place != NULL && index > 0; index -= 1) {
        place = put_group(writer, place, table, message, &table->groups[index - 1]);
    }
    return place;
}

static inline uint8_t *_Nullable put_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message) {
    bool is_large = ((const ProtobufCMessage *)message)->n_unknown_fields > 0 || table->groups != NULL;
    place = is_large ? put_large_message(writer, place, table, message)
                     : put_fields_before(
                         place, message, table->fields + table->field_count, writer, table->fields);
    if (place == NULL && writer->failure->message == NULL) writer->failure->message = table;
    return place;
}

static inline uint8_t *_Nullable put_submessage(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value) {
    const void *message = lifeline_load_pointer(value);
    if (message == NULL) {
        place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
        return place == NULL ? NULL : lifeline_put_varint(place, 0);
    }
    if (writer->depth == 0) return lifeline_writer_fail(writer, LIFELINE_TOO_DEEP);
    size_t before = (size_t)(writer->end - place);  // counted from the end, which growing does not change
    writer->depth -= 1;
    place = put_message(writer, place, field->message, message);
    if (place != NULL) place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    writer->depth += 1;
    return lifeline_put_varint(place, (size_t)(writer->end - place) - before);
}

uint8_t *lifeline_put_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message) {
    return put_message(writer, place, table, message);
}

uint8_t *lifeline_put_submessage(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value) {
    return put_submessage(writer, place, field, value);
}

// MARK: Messages and repeated fields

HANDLER put_always_message(PARAMETERS) {
    place = put_submessage(writer, place, field, value_of(message, field));
    if (place == NULL) return fail_at(writer, field);
    place = lifeline_put_tag(place, field);
    CONTINUE();
}

HANDLER put_pointer_message(PARAMETERS) {
    if (lifeline_load_pointer(value_of(message, field)) == NULL) CONTINUE();
    CONTINUE_WITH(put_always_message);
}

HANDLER put_oneof_message(PARAMETERS) {
    if (quantifier_of(message, field) != field->number) CONTINUE();
    CONTINUE_WITH(put_always_message);
}

HANDLER put_elements(PARAMETERS) {
    place = lifeline_put_repeated(writer, place, field, message);
    if (place == NULL) return fail_at(writer, field);
    CONTINUE();
}

HANDLER put_repeated(PARAMETERS) {
    if (lifeline_count(field, message) == 0) CONTINUE();
    CONTINUE_WITH(put_elements);
}

// MARK: The handlers by form

#define OF_TYPE(TYPE, AS)                                                                    \
    [LIFELINE_FORM(LIFELINE_PRESENCE_IMPLICIT, LIFELINE_TYPE_##TYPE)] = put_implicit_##AS,   \
    [LIFELINE_FORM(LIFELINE_PRESENCE_FLAG, LIFELINE_TYPE_##TYPE)] = put_flagged_##AS,        \
    [LIFELINE_FORM(LIFELINE_PRESENCE_ONEOF, LIFELINE_TYPE_##TYPE)] = put_oneof_##AS,         \
    [LIFELINE_FORM(LIFELINE_PRESENCE_ALWAYS, LIFELINE_TYPE_##TYPE)] = put_always_##AS,

static Handler *const handlers[FORM_COUNT] = {
    [0] = put_repeated,
    LIFELINE_FOR_EACH_NUMBER_TYPE(OF_TYPE)
    OF_TYPE(STRING, BYTES)
    OF_TYPE(BYTES, BYTES)
    [LIFELINE_FORM(LIFELINE_PRESENCE_POINTER, LIFELINE_TYPE_MESSAGE)] = put_pointer_message,
    [LIFELINE_FORM(LIFELINE_PRESENCE_ONEOF, LIFELINE_TYPE_MESSAGE)] = put_oneof_message,
    [LIFELINE_FORM(LIFELINE_PRESENCE_ALWAYS, LIFELINE_TYPE_MESSAGE)] = put_always_message,
};
