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

// Negative when the name at `index` comes before `name` in the order of names, 0 when they are the same.
static inline int lifeline_compare_name(
    const LifelineNames *names, uint32_t index, const uint8_t *name, size_t count, bool in_lower_case) {
    LifelineName other = names->names[index];
    if (other.count != count) return (other.count > count) - (other.count < count);
    const uint8_t *bytes = (const uint8_t *)names->text + other.offset;
    if (!in_lower_case) return memcmp(bytes, name, count);
    int order = 0;
    for (size_t place = 0; order == 0 && place < count; place += 1) {
        bool is_upper = name[place] >= 'A' && name[place] <= 'Z';
        order = bytes[place] - (is_upper ? name[place] + 'a' - 'A' : name[place]);
    }
    return order;
}

// The place in the order of names of the first one that is the same as `name`, or as `name` in lower case: or of the
// first one after that.
static inline uint32_t lifeline_place_of_name(
    const LifelineNames *names, const uint8_t *name, size_t count, bool in_lower_case) {
    uint32_t low = 0;
    uint32_t high = names->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lifeline_compare_name(names, names->order[middle], name, count, in_lower_case) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The index of a name in `names`, or -1. Of two that are the same, that of a .proto file.
static inline int64_t lifeline_find_name(const LifelineNames *names, const uint8_t *name, size_t count) {
    uint32_t place = lifeline_place_of_name(names, name, count, false);
    bool found = place < names->order_count && lifeline_is_name(names, names->order[place], name, count);
    return found ? (int64_t)names->order[place] : -1;
}

// The index of the field with this name in the .proto file, or -1.
static inline int64_t lifeline_find_field_by_name(
    const LifelineMessageTable *table, const uint8_t *name, size_t count) {
    int64_t found = lifeline_find_name(&table->names, name, count);
    return found >= 0 && found % 2 == 0 ? found / 2 : -1;
}

// The index of the field with this name in JSON or, if there is none, in the .proto file; or -1.
static inline int64_t lifeline_find_field_by_json_name(
    const LifelineMessageTable *table, const uint8_t *name, size_t count) {
    const LifelineNames *names = &table->names;
    uint32_t place = lifeline_place_of_name(names, name, count, false);
    int64_t found = -1;
    for (; place < names->order_count && lifeline_is_name(names, names->order[place], name, count); place += 1) {
        found = names->order[place] / 2;
    }
    return found;
}

// The name of a field's message, without those around it: in text format, that of a field with
// LIFELINE_FIELD_NAMED_BY_TYPE.
static inline const char *lifeline_type_name(const LifelineField *field, size_t *count) {
    const char *name = strrchr(field->message->full_name, '.');
    name = name == NULL ? field->message->full_name : name + 1;
    *count = strlen(name);
    return name;
}

// The index of the field with LIFELINE_FIELD_NAMED_BY_TYPE whose type has this name, or -1. The field's own name is
// that in lower case.
static inline int64_t lifeline_find_field_by_type(
    const LifelineMessageTable *table, const uint8_t *name, size_t count) {
    const LifelineNames *names = &table->names;
    uint32_t place = lifeline_place_of_name(names, name, count, true);
    if (place == names->order_count || names->order[place] % 2 != 0) return -1;
    int64_t index = names->order[place] / 2;
    const LifelineField *field = &table->fields[index];
    if ((field->flags & LIFELINE_FIELD_NAMED_BY_TYPE) == 0) return -1;
    size_t type_count;
    const char *type = lifeline_type_name(field, &type_count);
    return type_count == count && memcmp(type, name, count) == 0 ? index : -1;
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
