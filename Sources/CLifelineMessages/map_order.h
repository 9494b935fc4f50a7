// The order of a map's entries: ascending by key, without duplicates. Numbers are compared by value, strings by their
// bytes.
#ifndef LIFELINE_MAP_ORDER_H
#define LIFELINE_MAP_ORDER_H

#include <stdbool.h>

#include "lifeline_arena.h"
#include "lifeline_table.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Whether the entry that `previous` points to has a lower key than `map_entry`.
bool lifeline_entries_ascend(const LifelineField *field, const void *previous, const void *map_entry);

// Sorts the entries of a map field, which has some, and keeps the last of each key. The cost is n log n, whatever the
// input. When the arena's budget is exhausted, returns false and leaves the map empty: readers rely on the order.
bool lifeline_sort_entries(LifelineArena *arena, const LifelineField *field, void *message);

LIFELINE_ASSUME_NONNULL_END

#endif
