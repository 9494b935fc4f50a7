// Decodes map fields: entries are appended as they arrive, and sorted by key once, after the whole input.
//
// Invariant: an array whose header is not marked unsorted is ascending by key without duplicates. So entries that
// arrive in order, as most encoders write them, cost one comparison each, and a map that gets entries a hundred
// thousand times is sorted once.
#include "array.h"
#include "decoder.h"
#include "map_order.h"

// Lists a map that gets its first entry out of order.
static bool mark_unsorted(
    LifelineDecoder *decoder, const LifelineMessageTable *table, void *message, const LifelineField *field,
    LifelineArrayHeader *header) {
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
    uint8_t *place = lifeline_append(decoder->arena, message, field, 1);
    if (place == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    size_t count = lifeline_count(field, message);
    LifelineArrayHeader *header = lifeline_array_header(lifeline_load_pointer(lifeline_at(message, field->offset)));
    bool may_stand_here =
        header->unsorted != 0 || count == 0 || lifeline_entries_ascend(field, place - sizeof(void *), entry);
    if (!may_stand_here && !mark_unsorted(decoder, table, message, field, header)) {
        return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    }
    lifeline_store_pointer(place, entry);
    lifeline_set_count(field, message, count + 1);
    return LIFELINE_STEP_STORED;
}

LifelineStep lifeline_decode_map_entry(LifelineDecoder *decoder, LifelineScope *scope, const LifelineField *field) {
    LifelineInput payload;
    if (!lifeline_enter_child(decoder, scope, field, &payload)) return LIFELINE_STEP_FAILED;
    void *entry = lifeline_message_create(field->message, decoder->arena);
    if (entry == NULL) return lifeline_fail(decoder, LIFELINE_OUT_OF_MEMORY);
    LifelineStep step = lifeline_decode_child(decoder, scope, field, entry, payload);
    if (step != LIFELINE_STEP_STORED) return step;
    // An entry whose value a closed enum does not declare is an unknown field of the message that has the map.
    const LifelineField *value = &field->message->fields[1];
    if (lifeline_is_closed_enum(value)) {
        int32_t number = (int32_t)lifeline_load32(lifeline_at(entry, value->offset));
        if (!lifeline_enum_knows(value, number)) return LIFELINE_STEP_UNKNOWN;
    }
    return lifeline_append_entry(decoder, scope->table, scope->message, field, entry);
}

bool lifeline_sort_maps(LifelineDecoder *decoder) {
    bool sorted = true;
    for (const LifelineUnsortedMap *map = decoder->unsorted_maps; map != NULL; map = map->next) {
        if (lifeline_sort_entries(decoder->arena, map->field, map->message)) continue;
        sorted = false;
        LifelineFailure *failure = decoder->failure;
        if (failure->status != LIFELINE_OK) continue;
        *failure = (LifelineFailure){
            .status = LIFELINE_OUT_OF_MEMORY, .field_number = map->field->number, .message = map->table};
    }
    return sorted;
}
