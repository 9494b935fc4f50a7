// The differences between our JSON and Python's that are known and meant, each with its reason. All others are
// failures.
#pragma once

#include <string>

#include "textual_exceptions.h"

namespace differential {

const Exceptions &json_exceptions();

// Whether only Python refuses to print a message, which we print as this text, and why that is meant.
bool explain_printing(const std::string &text, const OracleAnswer &python);

// The name of the exception that explains why C++ libprotobuf refuses, with this reason, a text that we print; NULL
// when there is none.
const char *explain_cpp_refusal(const std::string &text, const std::string &reason);

}  // namespace differential
