// Reads and writes extensions.
//
// The table of an extension describes a message with a single field, which is the extension. The message that it
// extends keeps it, encoded, among its unknown fields. So a message is the same whether its extensions are known or
// not.
#ifndef LIFELINE_EXTENSIONS_H
#define LIFELINE_EXTENSIONS_H

#include "lifeline_message.h"
#include "lifeline_types.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// The extension of `message`, as a new message of the extension's table. NULL when it is absent, not of the extension's
// type, or when it does not fit into the arena's budget. Strings that are not UTF-8 are accepted where the arena may
// hold such.
void *_Nullable lifeline_extension_read(
    const LifelineMessageTable *extension, const void *message, LifelineArena *arena);

typedef void (*LifelineExtensionVisit)(void *_Nullable context, const LifelineMessageTable *extension);

// Calls `visit`, with the context of `types`, for each extension of `message` that `types` know and that
// lifeline_extension_read finds, in the order of their numbers. One that takes more than about `limit` bytes is
// skipped. Memory that this takes is freed before it returns. False when memory is exhausted.
bool lifeline_extensions_present(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool accept_malformed_text,
    size_t limit, LifelineExtensionVisit visit);

// Replaces the extension of `message` by `value`, a message of the extension's table, or removes it where `value` has
// no field set. False, with nothing changed, when the arena's budget or malloc is exhausted, or the extension takes
// more than INT32_MAX bytes.
bool lifeline_extension_write(
    const LifelineMessageTable *extension, void *message, const void *value, LifelineArena *arena);

// Makes well-formed encoded fields the unknown ones of `message`, as a single run, in place of those that it has.
// False, with nothing changed, when the arena's budget is exhausted.
bool lifeline_unknown_fields_set(void *message, const uint8_t *_Nullable bytes, size_t count, LifelineArena *arena);

// Whether all extensions that `types` know, in `message` and below it, are of their types, and have the `required`
// fields unless `partial`. The options' budget limits the memory for this, which is freed before it returns.
bool lifeline_extensions_check(
    const LifelineMessageTable *table, const void *message, const LifelineTypes *types, bool partial,
    const LifelineDecodeOptions *options, LifelineFailure *failure);

// The name between the brackets of text format: the extension's full name. In a message set it is the message's, if the
// extension is declared in there.
const char *lifeline_extension_text_name(const LifelineMessageTable *extension, size_t *count);

LIFELINE_ASSUME_NONNULL_END

#endif
