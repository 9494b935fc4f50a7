// libprotobuf-c, with the code that its own protoc-gen-c generates.
#ifndef C_CONTENDER_H
#define C_CONTENDER_H

#include "native_contender.h"

const struct native_contender *c_contender(void);

#endif
