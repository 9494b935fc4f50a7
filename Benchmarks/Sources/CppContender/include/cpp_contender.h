// libprotobuf, the C++ library, with a new arena for each message.
#ifndef CPP_CONTENDER_H
#define CPP_CONTENDER_H

#include "native_contender.h"

#ifdef __cplusplus
extern "C"
#endif
const struct native_contender *cpp_contender(void);

#endif
