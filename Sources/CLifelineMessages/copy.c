// Copies messages with everything that they point to. A copy starts as the default instance and gets the fields that
// are present. So stale pointers, in a former member of a oneof or a cleared field, are not followed.
//
// Invariant: lifeline_message_copy_size counts each allocation that lifeline_message_copy makes, rounded up as the
// arena does.
#include "fields.h"
#include "lifeline_array.h"
#include "lifeline_message.h"
#include "sizes.h"

static size_t array_size(size_t count, size_t element_size) {
    return lifeline_rounded_up(sizeof(LifelineArrayHeader) + count * element_size);
}

static size_t value_copy_size(const LifelineField *field, const void *value) {
    if (lifeline_is_bytes(field)) return lifeline_rounded_up(lifeline_load_bytes(value).len);
    if (field->type != LIFELINE_TYPE_MESSAGE) return 0;
    const void *message = lifeline_load_pointer(value);
    return message == NULL ? 0 : lifeline_message_copy_size(field->message, message);
}

static bool has_pointers(const LifelineField *field) {
    return field->type == LIFELINE_TYPE_MESSAGE || lifeline_is_bytes(field);
}

static size_t elements_copy_size(const LifelineField *field, const void *message) {
    size_t count = lifeline_count(field, message);
    size_t element_size = lifeline_value_size(field);
    const uint8_t *elements = lifeline_load_pointer(lifeline_at(message, field->offset));
    size_t size = array_size(count, element_size);
    if (!has_pointers(field)) return size;
    for (size_t index = 0; index < count; index += 1) size += value_copy_size(field, elements + index * element_size);
    return size;
}

static size_t unknown_fields_copy_size(const ProtobufCMessage *message) {
    if (message->n_unknown_fields == 0) return 0;
    size_t size = array_size(message->n_unknown_fields, sizeof(ProtobufCMessageUnknownField));
    for (unsigned index = 0; index < message->n_unknown_fields; index += 1) {
        size += lifeline_rounded_up(message->unknown_fields[index].len);
    }
    return size;
}

size_t lifeline_message_copy_size(const LifelineMessageTable *table, const void *message) {
    size_t size = lifeline_rounded_up(table->size) + unknown_fields_copy_size(message);
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (!lifeline_is_present(field, message)) continue;
        size += lifeline_is_repeated(field) ? elements_copy_size(field, message)
                                            : value_copy_size(field, lifeline_at(message, field->offset));
    }
    return size;
}

// An array with its header, and room for exactly `count` elements.
static void *_Nullable create_elements(LifelineArena *arena, size_t count, size_t element_size) {
    LifelineArrayHeader *header = lifeline_arena_allocate(arena, sizeof *header + count * element_size);
    if (header == NULL) return NULL;
    *header = (LifelineArrayHeader){.capacity = (uint32_t)count};
    return header + 1;
}

static bool copy_bytes(const uint8_t *_Nullable data, size_t length, uint8_t *_Nullable *copy, LifelineArena *arena) {
    *copy = NULL;
    if (length == 0) return true;
    *copy = lifeline_arena_allocate(arena, length);
    if (*copy == NULL) return false;
    memcpy(*copy, data, length);
    return true;
}

static bool copy_value(const LifelineField *field, const void *from, void *to, LifelineArena *arena) {
    if (lifeline_is_bytes(field)) {
        ProtobufCBinaryData bytes = lifeline_load_bytes(from);
        uint8_t *data = NULL;
        if (!copy_bytes(bytes.data, bytes.len, &data, arena)) return false;
        lifeline_store_bytes(to, data, bytes.len);
        return true;
    }
    if (field->type == LIFELINE_TYPE_MESSAGE) {
        const void *message = lifeline_load_pointer(from);
        void *copy = message == NULL ? NULL : lifeline_message_copy(field->message, message, arena);
        lifeline_store_pointer(to, copy);
        return message == NULL || copy != NULL;
    }
    memcpy(to, from, lifeline_value_size(field));
    return true;
}

void *lifeline_elements_copy(const LifelineField *field, const void *elements, size_t count, LifelineArena *arena) {
    size_t size = lifeline_value_size(field);
    uint8_t *copies = create_elements(arena, count, size);
    if (copies == NULL) return NULL;
    if (!has_pointers(field)) {
        memcpy(copies, elements, count * size);
    } else {
        const uint8_t *values = elements;
        for (size_t index = 0; index < count; index += 1) {
            if (!copy_value(field, values + index * size, copies + index * size, arena)) return NULL;
        }
    }
    return copies;
}

static bool copy_elements(const LifelineField *field, const void *from, void *to, LifelineArena *arena) {
    size_t count = lifeline_count(field, from);
    const void *elements = lifeline_load_pointer(lifeline_at(from, field->offset));
    void *copies = lifeline_elements_copy(field, elements, count, arena);
    if (copies == NULL) return false;
    lifeline_store_pointer(lifeline_mutable_at(to, field->offset), copies);
    lifeline_set_count(field, to, count);
    return true;
}

static bool copy_field(const LifelineField *field, const void *from, void *to, LifelineArena *arena) {
    if (lifeline_is_repeated(field)) return copy_elements(field, from, to, arena);
    if (!copy_value(field, lifeline_at(from, field->offset), lifeline_mutable_at(to, field->offset), arena)) {
        return false;
    }
    lifeline_mark_present(field, to);
    return true;
}

static bool copy_unknown_fields(const ProtobufCMessage *from, ProtobufCMessage *to, LifelineArena *arena) {
    unsigned count = from->n_unknown_fields;
    if (count == 0) return true;
    ProtobufCMessageUnknownField *copies = create_elements(arena, count, sizeof *copies);
    if (copies == NULL) return false;
    for (unsigned index = 0; index < count; index += 1) {
        copies[index] = from->unknown_fields[index];
        if (!copy_bytes(copies[index].data, copies[index].len, &copies[index].data, arena)) return false;
    }
    to->unknown_fields = copies;
    to->n_unknown_fields = count;
    return true;
}

void *lifeline_message_copy(const LifelineMessageTable *table, const void *message, LifelineArena *arena) {
    void *copy = lifeline_message_create(table, arena);
    if (copy == NULL) return NULL;
    for (uint32_t index = 0; index < table->field_count; index += 1) {
        const LifelineField *field = &table->fields[index];
        if (lifeline_is_present(field, message) && !copy_field(field, message, copy, arena)) return NULL;
    }
    return copy_unknown_fields(message, copy, arena) ? copy : NULL;
}
