// Decoding map fields: entries are appended as they arrive, and sorted by key once, when everything is read.
//
// Invariant: an array whose header is not marked unsorted is ascending by key without duplicates. So entries that
// arrive in order, as most encoders write them, cost one comparison each, and a map that is added to a hundred thousand
// times is sorted once.
#include "decoder.h"

static int compare_bytes(ProtobufCBinaryData left, ProtobufCBinaryData right) {
    size_t common = left.len < right.len ? left.len : right.len;
    int order = common == 0 ? 0 : memcmp(left.data, right.data, common);
    return order != 0 ? order : (left.len > right.len) - (left.len < right.len);
}

// Whether the first key comes before the second (negative), is the same (0), or comes after it (positive).
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

// Lists a map that is about to get an entry out of order.
static bool mark_unsorted(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    void *elements) {
    LifelineArrayHeader *header = lifeline_array_header(elements);
    if (header->unsorted != 0) return true;
    LifelineUnsortedMap *map = lifeline_arena_allocate(decoder->arena, sizeof *map);
    if (map == NULL) return false;
    *map = (LifelineUnsortedMap){.table = table, .message = message, .field = field, .next = decoder->unsorted_maps};
    decoder->unsorted_maps = map;
    header->unsorted = 1;
    return true;
}

LifelineStep lifeline_append_entry(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    void *entry) {
    void *place = lifeline_append(decoder, message, field, 1);
    if (place == NULL) return LIFELINE_STEP_FAILED;
    size_t count = lifeline_count(field, message);
    void **entries = lifeline_load_pointer(lifeline_at(message, field->offset));
    bool in_order = count == 0 || lifeline_entries_ascend(field, &entries[count - 1], entry);
    if (!in_order && !mark_unsorted(decoder, table, message, field, entries)) {
        return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    }
    lifeline_store_pointer(place, entry);
    lifeline_set_count(field, message, count + 1);
    return LIFELINE_STEP_STORED;
}

LifelineStep lifeline_decode_map_entry(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload = scope->input;
    if (!lifeline_enter_child(decoder, scope, &payload)) return LIFELINE_STEP_FAILED;
    void *entry = lifeline_message_create(field->message, decoder->arena);
    if (entry == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    LifelineStep step = lifeline_decode_child(decoder, field->message, entry, payload);
    if (step != LIFELINE_STEP_STORED) return step;
    // An entry whose value a closed enum does not know is an unknown field of the message that has the map.
    const LifelineField *value = &field->message->fields[1];
    if (lifeline_is_closed_enum(value)) {
        int32_t number = (int32_t)lifeline_load32(lifeline_at(entry, value->offset));
        if (!lifeline_enum_knows(value, number)) return LIFELINE_STEP_UNKNOWN;
    }
    return lifeline_append_entry(decoder, scope->table, scope->message, field, entry);
}

// Merges the sorted runs from[start..<middle] and from[middle..<end]; of equal keys the left run's come first.
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

// A merge sort from the bottom up: stable, n log n whatever the input, no recursion.
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

// Keeps the last entry of each key; returns how many that are.
static size_t remove_duplicates(const LifelineField *key, void **entries, size_t count) {
    size_t kept = 0;
    for (size_t index = 0; index < count; index += 1) {
        if (kept > 0 && compare_keys(key, entries[kept - 1], entries[index]) == 0) kept -= 1;
        entries[kept] = entries[index];
        kept += 1;
    }
    return kept;
}

static bool sort_map(LifelineArena *arena, const LifelineUnsortedMap *map) {
    const LifelineField *key = &map->field->message->fields[0];
    void **entries = lifeline_load_pointer(lifeline_at(map->message, map->field->offset));
    size_t count = lifeline_count(map->field, map->message);
    lifeline_array_header(entries)->unsorted = 0;
    void **scratch = lifeline_arena_allocate(arena, count * sizeof *scratch);
    if (scratch == NULL) {
        lifeline_set_count(map->field, map->message, 0);  // nothing is better than something out of order
        return false;
    }
    sort(key, entries, scratch, count);
    lifeline_set_count(map->field, map->message, remove_duplicates(key, entries, count));
    lifeline_arena_resize_last(arena, scratch, count * sizeof *scratch, 0);
    return true;
}

bool lifeline_sort_maps(LifelineDecoder *decoder) {
    bool sorted = true;
    for (const LifelineUnsortedMap *map = decoder->unsorted_maps; map != NULL; map = map->next) {
        if (sort_map(decoder->arena, map)) continue;
        sorted = false;
        LifelineFailure *failure = decoder->failure;
        if (failure->status != LIFELINE_OK) continue;
        *failure = (LifelineFailure){
            .status = LIFELINE_OUT_OF_MEMORY, .field_number = map->field->number, .message = map->table};
    }
    return sorted;
}
