// The known and intended differences between our text format and those of Python and C++, each with its reason. All
// others are failures.
#pragma once

#include "textual_exceptions.h"

namespace differential {

// From Python.
const Exceptions &text_exceptions();

// From C++ libprotobuf.
const Exceptions &text_exceptions_of_cpp();

}  // namespace differential
