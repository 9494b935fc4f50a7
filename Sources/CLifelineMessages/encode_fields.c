// Encodes a message's fields: the loop over the fields, and those that are not repeated.
//
// Each form of field (its kind of presence and its type) has a handler, which writes the field if it is present, and
// goes on to the handler of the field before it. With tail calls that is a jump: the state stays in registers from
// field to field, and the processor predicts the successor of each handler separately. Without them, handlers return to
// a loop, which calls the next one.
#include "encoder.h"
#include "tail_calls.h"

// The field that is being written, and the message's first field, before which nothing comes.
#define PARAMETERS                                                                              \
    uint8_t *place, const uint8_t *message, const LifelineField *field, LifelineWriter *writer, \
        const LifelineField *first
#define ARGUMENTS place, message, field, writer, first

#if defined(LIFELINE_HAS_TAIL_CALLS)
// Not inlined into another handler, which would then have to save registers across its calls.
#define HANDLER static __attribute__((preserve_none, noinline)) uint8_t *_Nullable
typedef __attribute__((preserve_none)) uint8_t *_Nullable Handler(PARAMETERS);
#define CONTINUE_WITH(handler) __attribute__((musttail)) return handler(ARGUMENTS)
#define CONTINUE()                            \
    do {                                      \
        if (field == first) return place;     \
        field -= 1;                           \
        CONTINUE_WITH(handlers[field->form]); \
    } while (0)
#else
#define HANDLER static uint8_t *_Nullable
typedef uint8_t *_Nullable Handler(PARAMETERS);
#define CONTINUE_WITH(handler) return handler(ARGUMENTS)
#define CONTINUE()    \
    do {              \
        (void)first;  \
        return place; \
    } while (0)
#endif

enum { FORM_COUNT = LIFELINE_FORM(LIFELINE_PRESENCE_ALWAYS, LIFELINE_TYPE_SINT64) + 1 };

static Handler *const handlers[FORM_COUNT];  // at the end

static const uint8_t *value_of(const uint8_t *message, const LifelineField *field) {
    return message + field->offset;
}

static uint8_t *_Nullable fail_at(LifelineWriter *writer, const LifelineField *field) {
    // A submessage that failed has added its own place.
    if (writer->failure->message == NULL) writer->failure->field_number = field->number;
    return NULL;
}

// Makes room for any short field, and then writes the field.
HANDLER make_room(PARAMETERS) {
    place = lifeline_writer_grow(writer, place, LIFELINE_ROOM_FOR_SHORT_STRING);
    if (place == NULL) return fail_at(writer, field);
    CONTINUE_WITH(handlers[field->form]);
}

// MARK: Numbers

#define DEFINE_NUMBER_HANDLER(PRESENCE, TYPE)                                                                        \
    HANDLER put_##PRESENCE##_##TYPE(PARAMETERS) {                                                                    \
        if (!lifeline_is_present_as(LIFELINE_PRESENCE_##PRESENCE, LIFELINE_TYPE_##TYPE, field, message)) CONTINUE(); \
        if (!lifeline_writer_has_room(writer, place, LIFELINE_ROOM_FOR_SCALAR)) CONTINUE_WITH(make_room);            \
        uint64_t number = lifeline_load_number(LIFELINE_TYPE_##TYPE, value_of(message, field));                      \
        place = lifeline_put_tag(lifeline_put_number(place, LIFELINE_TYPE_##TYPE, number), field);                   \
        CONTINUE();                                                                                                  \
    }

// DEFINE(presence, type) for each kind of presence that a number, a string or bytes can have.
#define FOR_EACH_PRESENCE(DEFINE, TYPE) \
    DEFINE(IMPLICIT, TYPE) DEFINE(FLAG, TYPE) DEFINE(ONEOF, TYPE) DEFINE(ALWAYS, TYPE)

FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, BOOL)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, UINT32)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, INT32)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, SINT32)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, SINT64)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, UINT64)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, FIXED32)
FOR_EACH_PRESENCE(DEFINE_NUMBER_HANDLER, FIXED64)

// MARK: Strings and bytes

HANDLER put_long_string(PARAMETERS) {
    ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));
    place = lifeline_put_bytes(writer, place, bytes.data, bytes.len);
    if (place == NULL) return fail_at(writer, field);
    place = lifeline_put_tag(lifeline_put_varint(place, bytes.len), field);
    CONTINUE();
}

#define DEFINE_STRING_HANDLER(PRESENCE, TYPE)                                                                        \
    HANDLER put_##PRESENCE##_##TYPE(PARAMETERS) {                                                                    \
        if (!lifeline_is_present_as(LIFELINE_PRESENCE_##PRESENCE, LIFELINE_TYPE_##TYPE, field, message)) CONTINUE(); \
        ProtobufCBinaryData bytes = lifeline_load_bytes(value_of(message, field));                                   \
        if (bytes.len > LIFELINE_SHORT_STRING) CONTINUE_WITH(put_long_string);                                       \
        if (!lifeline_writer_has_room(writer, place, LIFELINE_ROOM_FOR_SHORT_STRING)) CONTINUE_WITH(make_room);      \
        place = lifeline_put_tag(lifeline_put_short_string(place, bytes), field);                                    \
        CONTINUE();                                                                                                  \
    }

FOR_EACH_PRESENCE(DEFINE_STRING_HANDLER, BYTES)

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

static uint8_t *_Nullable put_unknown_fields(
    LifelineWriter *writer, uint8_t *place, const ProtobufCMessage *message) {
    for (unsigned index = message->n_unknown_fields; index > 0; index -= 1) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[index - 1];
        place = lifeline_put_bytes(writer, place, field->data, field->len);
        if (place == NULL) return NULL;
        place = lifeline_put_varint(place, (uint64_t)field->tag << 3 | (uint64_t)field->wire_type);
    }
    return place;
}

static uint8_t *_Nullable put_group(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message,
    const LifelineFieldGroup *group) {
    if (lifeline_is_zero(lifeline_at(message, group->offset), group->size)) return place;
    bool is_last = group + 1 == table->groups + table->group_count;
    uint32_t end = is_last ? table->field_count : group[1].first_field;
    return put_fields_before(
        place, message, table->fields + end, writer, table->fields + group->first_field);
}

// Writes a message that has unknown fields, or so many fields that they are in groups.
static __attribute__((noinline)) uint8_t *_Nullable put_large_message(
    LifelineWriter *writer, uint8_t *place, const LifelineMessageTable *table, const void *message) {
    place = put_unknown_fields(writer, place, message);
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
    size_t before = (size_t)(writer->end - place);  // growing the buffer keeps distances from its end
    writer->depth -= 1;
    place = put_message(writer, place, field->message, message);
    if (place != NULL) place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    writer->depth += 1;
    return lifeline_put_varint(place, (size_t)(writer->end - place) - before);
}

uint8_t *lifeline_put_group(
    LifelineWriter *writer, uint8_t *place, const LifelineField *field, const void *value) {
    const void *message = lifeline_load_pointer(value);
    place = lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
    if (place == NULL) return NULL;
    place = lifeline_put_end_tag(place, field);
    if (message != NULL) {
        if (writer->depth == 0) return lifeline_writer_fail(writer, LIFELINE_TOO_DEEP);
        writer->depth -= 1;
        place = put_message(writer, place, field->message, message);
        if (place == NULL) return NULL;
        writer->depth += 1;
    }
    return lifeline_writer_reserve(writer, place, LIFELINE_ROOM_FOR_SCALAR);
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

HANDLER put_ALWAYS_MESSAGE(PARAMETERS) {
    place = put_submessage(writer, place, field, value_of(message, field));
    if (place == NULL) return fail_at(writer, field);
    place = lifeline_put_tag(place, field);
    CONTINUE();
}

HANDLER put_ALWAYS_GROUP(PARAMETERS) {
    place = lifeline_put_group(writer, place, field, value_of(message, field));
    if (place == NULL) return fail_at(writer, field);
    place = lifeline_put_tag(place, field);
    CONTINUE();
}

#define DEFINE_MESSAGE_HANDLER(PRESENCE, TYPE)                                                                        \
    HANDLER put_##PRESENCE##_##TYPE(PARAMETERS) {                                                                     \
        if (!lifeline_is_present_as(LIFELINE_PRESENCE_##PRESENCE, LIFELINE_TYPE_MESSAGE, field, message)) CONTINUE(); \
        CONTINUE_WITH(put_ALWAYS_##TYPE);                                                                             \
    }

DEFINE_MESSAGE_HANDLER(POINTER, MESSAGE)
DEFINE_MESSAGE_HANDLER(ONEOF, MESSAGE)
DEFINE_MESSAGE_HANDLER(POINTER, GROUP)
DEFINE_MESSAGE_HANDLER(ONEOF, GROUP)

HANDLER put_elements(PARAMETERS) {
    place = lifeline_put_repeated(writer, place, field, message);
    if (place == NULL) return fail_at(writer, field);
    CONTINUE();
}

// Also for maps, whose presence is stored in the same way.
HANDLER put_repeated(PARAMETERS) {
    if (!lifeline_is_present_as(LIFELINE_PRESENCE_REPEATED, 0, field, message)) CONTINUE();
    CONTINUE_WITH(put_elements);
}

// MARK: The handlers by form

#define NUMBERED(PRESENCE, TYPE, AS) \
    [LIFELINE_FORM(LIFELINE_PRESENCE_##PRESENCE, LIFELINE_TYPE_##TYPE)] = put_##PRESENCE##_##AS,

#define NUMBERED_PRESENCES(TYPE, AS) \
    NUMBERED(IMPLICIT, TYPE, AS) NUMBERED(FLAG, TYPE, AS) NUMBERED(ONEOF, TYPE, AS) NUMBERED(ALWAYS, TYPE, AS)

static Handler *const handlers[FORM_COUNT] = {
    [0] = put_repeated,
    LIFELINE_FOR_EACH_NUMBER_TYPE(NUMBERED_PRESENCES)
    NUMBERED_PRESENCES(STRING, BYTES)
    NUMBERED_PRESENCES(BYTES, BYTES)
    NUMBERED(POINTER, MESSAGE, MESSAGE)
    NUMBERED(ONEOF, MESSAGE, MESSAGE)
    NUMBERED(ALWAYS, MESSAGE, MESSAGE)
    NUMBERED(POINTER, GROUP, GROUP)
    NUMBERED(ONEOF, GROUP, GROUP)
};
