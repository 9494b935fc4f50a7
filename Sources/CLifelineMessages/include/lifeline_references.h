// Counting references to Swift's objects.
#ifndef LIFELINE_REFERENCES_H
#define LIFELINE_REFERENCES_H

#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Of Swift's runtime: what the compiler calls where it sees several references taken at once. Not in loops, as it seems.
void *swift_retain_n(void *object, uint32_t count);

// Takes so many references to an object: one atomic operation instead of one each.
static inline void lifeline_retain(void *object, uint32_t count) { swift_retain_n(object, count); }

LIFELINE_ASSUME_NONNULL_END

#endif
