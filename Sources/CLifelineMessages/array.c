// Grows the elements of a repeated or map field.
//
// Invariant: elements are allocated only here, in array.h and in copy.c, with a header in front that has their
// capacity.
#include "array.h"

#include "fields.h"

static size_t new_capacity(size_t old, size_t needed, size_t element_size) {
    size_t smallest = lifeline_smallest_capacity(element_size);
    size_t doubled = old > UINT32_MAX / 2 ? UINT32_MAX : old * 2;
    size_t capacity = doubled > needed ? doubled : needed;
    return capacity > smallest ? capacity : smallest;
}

void *lifeline_array_reserve(
    LifelineArena *arena, void *elements, size_t count, size_t needed, size_t element_size) {
    size_t old_capacity = elements == NULL ? 0 : lifeline_array_header(elements)->capacity;
    if (elements != NULL && needed <= old_capacity) return elements;
    if (needed > UINT32_MAX) return NULL;
    size_t capacity = new_capacity(old_capacity, needed, element_size);
    if (capacity > (lifeline_largest_size - sizeof(LifelineArrayHeader)) / element_size) return NULL;
    size_t size = sizeof(LifelineArrayHeader) + capacity * element_size;

    if (elements != NULL) {
        LifelineArrayHeader *header = lifeline_array_header(elements);
        size_t old_size = sizeof *header + old_capacity * element_size;
        if (lifeline_arena_resize_last(arena, header, old_size, size)) {
            header->capacity = (uint32_t)capacity;
            return elements;
        }
    }
    LifelineArrayHeader *header = lifeline_arena_allocate(arena, size);
    if (header == NULL) return NULL;
    header->capacity = (uint32_t)capacity;
    header->unsorted = elements == NULL ? 0 : lifeline_array_header(elements)->unsorted;
    if (count > 0) memcpy(header + 1, elements, count * element_size);
    return header + 1;
}

void *lifeline_append(LifelineArena *arena, void *message, const LifelineField *field, size_t more) {
    void *place = lifeline_mutable_at(message, field->offset);
    size_t count = lifeline_count(field, message);
    size_t size = lifeline_value_size(field);
    uint8_t *elements = lifeline_load_pointer(place);
    if (elements == NULL && more <= UINT16_MAX) {
        elements = lifeline_first_elements(arena, more, size);
        if (elements != NULL) {
            lifeline_store_pointer(place, elements);
            return elements;
        }
    }
    // The sum does not overflow: both are counts of things in memory.
    if (elements == NULL || count + more > lifeline_array_header(elements)->capacity) {
        elements = lifeline_array_reserve(arena, elements, count, count + more, size);
        if (elements == NULL) return NULL;
        lifeline_store_pointer(place, elements);
    }
    return elements + count * size;
}
