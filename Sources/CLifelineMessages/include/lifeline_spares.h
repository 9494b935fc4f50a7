// Objects that are kept for their next use instead of being freed: a few for each thread, so that no lock is needed.
#ifndef LIFELINE_SPARES_H
#define LIFELINE_SPARES_H

#include <stdbool.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Takes one of the objects that this thread keeps; NULL if there is none.
void *_Nullable lifeline_spares_take(void);

// Keeps `object` for this thread. When the thread ends, it calls `release`, the same function for all objects, with
// each that it still keeps. Returns false and does nothing when the thread keeps enough of them.
bool lifeline_spares_keep(void *object, void (*release)(void *object));

LIFELINE_ASSUME_NONNULL_END

#endif
