#include "map_order.h"

#include "array.h"
#include "fields.h"

static int compare_bytes(ProtobufCBinaryData left, ProtobufCBinaryData right) {
    size_t common = left.len < right.len ? left.len : right.len;
    int order = common == 0 ? 0 : memcmp(left.data, right.data, common);
    return order != 0 ? order : (left.len > right.len) - (left.len < right.len);
}

// Negative when the left key is lower, 0 when both are the same, positive when it is higher.
static int compare_keys(const LifelineField *key, const void *left_entry, const void *right_entry) {
    const void *left = lifeline_at(left_entry, key->offset);
    const void *right = lifeline_at(right_entry, key->offset);
    if (key->type == LIFELINE_TYPE_STRING) return compare_bytes(lifeline_load_bytes(left), lifeline_load_bytes(right));
    size_t size = lifeline_value_size(key);
    uint64_t left_bits = lifeline_load_scalar(left, size);
    uint64_t right_bits = lifeline_load_scalar(right, size);
    switch (key->type) {
        case LIFELINE_TYPE_INT32:
        case LIFELINE_TYPE_SINT32:
        case LIFELINE_TYPE_SFIXED32:
            return ((int32_t)left_bits > (int32_t)right_bits) - ((int32_t)left_bits < (int32_t)right_bits);
        case LIFELINE_TYPE_INT64:
        case LIFELINE_TYPE_SINT64:
        case LIFELINE_TYPE_SFIXED64:
            return ((int64_t)left_bits > (int64_t)right_bits) - ((int64_t)left_bits < (int64_t)right_bits);
        default:
            return (left_bits > right_bits) - (left_bits < right_bits);
    }
}

bool lifeline_entries_ascend(const LifelineField *field, const void *previous, const void *map_entry) {
    return compare_keys(&field->message->fields[0], lifeline_load_pointer(previous), map_entry) < 0;
}

// Merges the sorted runs from[start..<middle] and from[middle..<end]. Of equal keys, those of the left run come first.
static void merge(
    const LifelineField *key, void *const *from, size_t start, size_t middle, size_t end, void **to) {
    if (middle == end || compare_keys(key, from[middle - 1], from[middle]) <= 0) {
        memcpy(to + start, from + start, (end - start) * sizeof *to);
        return;
    }
    size_t left = start;
    size_t right = middle;
    for (size_t index = start; index < end; index += 1) {
        bool take_left = right == end || (left < middle && compare_keys(key, from[left], from[right]) <= 0);
        to[index] = take_left ? from[left++] : from[right++];
    }
}

// A merge sort from the bottom up, which is stable and needs no recursion.
static void sort(const LifelineField *key, void **entries, void **scratch, size_t count) {
    void **from = entries;
    void **to = scratch;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - start < 2 * width ? count : start + 2 * width;
            merge(key, from, start, middle, end, to);
        }
        void **merged = to;
        to = from;
        from = merged;
    }
    if (from != entries) memcpy(entries, from, count * sizeof *entries);
}

// Keeps the last entry of each key. Returns how many there are.
static size_t remove_duplicates(const LifelineField *key, void **entries, size_t count) {
    size_t kept = 0;
    for (size_t index = 0; index < count; index += 1) {
        if (kept > 0 && compare_keys(key, entries[kept - 1], entries[index]) == 0) kept -= 1;
        entries[kept] = entries[index];
        kept += 1;
    }
    return kept;
}

bool lifeline_sort_entries(LifelineArena *arena, const LifelineField *field, void *message) {
    const LifelineField *key = &field->message->fields[0];
    void **entries = lifeline_load_pointer(lifeline_at(message, field->offset));
    size_t count = lifeline_count(field, message);
    lifeline_array_header(entries)->unsorted = 0;
    void **scratch = lifeline_arena_allocate(arena, count * sizeof *scratch);
    if (scratch == NULL) {
        lifeline_set_count(field, message, 0);
        return false;
    }
    sort(key, entries, scratch, count);
    lifeline_set_count(field, message, remove_duplicates(key, entries, count));
    lifeline_arena_resize_last(arena, scratch, count * sizeof *scratch, 0);
    return true;
}
