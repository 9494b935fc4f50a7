// Counting references to Swift's objects.
#ifndef LIFELINE_REFERENCES_H
#define LIFELINE_REFERENCES_H

#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Takes so many references to an object of Swift's: one atomic operation instead of one each.
void lifeline_retain(void *object, uint32_t count);

LIFELINE_ASSUME_NONNULL_END

#endif
