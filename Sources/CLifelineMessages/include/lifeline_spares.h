// Objects that are kept for their next use instead of being freed: a few for each thread, so that nothing is locked.
#ifndef LIFELINE_SPARES_H
#define LIFELINE_SPARES_H

#include <stdbool.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// An object that this thread keeps, which it does no longer; NULL when there is none.
void *_Nullable lifeline_spares_take(void);

// Keeps `object` for this thread, which calls `release` with what it still keeps when it ends; it must be the same for
// all objects. False, with nothing done, when the thread keeps enough of them.
bool lifeline_spares_keep(void *object, void (*release)(void *object));

LIFELINE_ASSUME_NONNULL_END

#endif
