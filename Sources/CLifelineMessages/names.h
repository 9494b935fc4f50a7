// Finds names in tables.
#ifndef LIFELINE_NAMES_H
#define LIFELINE_NAMES_H

#include <stdbool.h>
#include <string.h>

#include "lifeline_table.h"

LIFELINE_ASSUME_NONNULL_BEGIN

static inline bool lifeline_is_name(const LifelineNames *names, uint32_t index, const uint8_t *name, size_t count) {
    LifelineName other = names->names[index];
    return other.count == count && memcmp(names->text + other.offset, name, count) == 0;
}

// The index of a name in `names`, or -1.
static inline int64_t lifeline_find_name(const LifelineNames *names, const uint8_t *name, size_t count) {
    uint32_t low = 0;
    uint32_t high = names->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        LifelineName other = names->names[names->order[middle]];
        int order = other.count != count ? (other.count > count) - (other.count < count)
                                         : memcmp(names->text + other.offset, name, count);
        if (order == 0) return names->order[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

// The name of a field's message, without those around it: in text format, that of a field with
// LIFELINE_FIELD_NAMED_BY_TYPE.
static inline const char *lifeline_type_name(const LifelineField *field, size_t *count) {
    const char *name = strrchr(field->message->full_name, '.');
    name = name == NULL ? field->message->full_name : name + 1;
    *count = strlen(name);
    return name;
}

// The number of the enum's value with this name. False when there is none.
static inline bool lifeline_find_enum_value(
    const LifelineEnum *enumeration, const uint8_t *name, size_t count, int32_t *number) {
    int64_t index = lifeline_find_name(&enumeration->names, name, count);
    if (index < 0) return false;
    *number = index < enumeration->count ? enumeration->numbers[index]
                                         : enumeration->alias_numbers[index - enumeration->count];
    return true;
}

LIFELINE_ASSUME_NONNULL_END

#endif
