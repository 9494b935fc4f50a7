// Counts references to Swift objects.
#ifndef LIFELINE_REFERENCES_H
#define LIFELINE_REFERENCES_H

#include <stdint.h>

#include "lifeline_base.h"

LIFELINE_ASSUME_NONNULL_BEGIN

// Takes `count` references to a Swift object, with one atomic operation.
void lifeline_retain(void *object, uint32_t count);

LIFELINE_ASSUME_NONNULL_END

#endif
