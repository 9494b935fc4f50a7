// Shared by all that reads and writes several extensions of a message.
#ifndef LIFELINE_EXTENSIONS_INTERNAL_H
#define LIFELINE_EXTENSIONS_INTERNAL_H

#include "lifeline_extensions.h"

LIFELINE_ASSUME_NONNULL_BEGIN

typedef struct LifelineExtension {
    const LifelineMessageTable *table;
    void *_Nullable value;     // a message of that table
    uint8_t *_Nullable bytes;  // while it is read: its encoding
    size_t count;              // of the bytes
} LifelineExtension;

// Extensions of one message, in an arena. Those that were read are in the order of their numbers.
typedef struct LifelineExtensions {
    LifelineExtension *_Nullable all;
    size_t count;
} LifelineExtensions;

// The extension with this number, or NULL.
LifelineExtension *_Nullable lifeline_find_extension(const LifelineExtensions *extensions, uint32_t number);

// The extension with the number of that table's, whatever its own table is. It is added, with an empty value, if need
// be: then `*added` is set. NULL when the arena's budget is exhausted. Adding n of them takes n log² n steps, in any
// order.
LifelineExtension *_Nullable lifeline_add_extension(
    LifelineExtensions *extensions, LifelineArena *arena, const LifelineMessageTable *table, bool *added);

// Reads all extensions of `message` that `types` know. Those that are not of their types are left out, as unknown
// fields, unless `is_strict`. The cost is n log² n in the unknown fields. False when the arena's budget is exhausted,
// at one that is too deep, or, when strict, at one that is not of its type.
bool lifeline_read_extensions(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool is_strict,
    const LifelineDecodeOptions *options, LifelineArena *arena, LifelineExtensions *extensions,
    LifelineFailure *failure);

// Writes extensions to the unknown fields of `message`, in place of those with the same numbers. One is written before
// the first field that has a higher number. Sorts `extensions`. False, with `message` as it was, when memory is
// exhausted or an extension takes more than INT32_MAX bytes.
bool lifeline_write_extensions(
    const LifelineMessageTable *table, void *message, LifelineExtensions *extensions, LifelineArena *arena,
    LifelineFailure *failure);

LIFELINE_ASSUME_NONNULL_END

#endif
