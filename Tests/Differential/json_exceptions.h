// The known and intended differences between our JSON and Python's, each with its reason. All others are failures.
#pragma once

#include <string>

#include "textual_exceptions.h"

namespace differential {

const Exceptions &json_exceptions();

// The reason for which only Python refuses to print a message that we print as this text, if that is intended.
bool explain_printing(const std::string &text, const OracleAnswer &python);

// The name of the exception that explains why C++ libprotobuf refuses, with this reason, a text that we print; NULL
// when there is none.
const char *explain_cpp_refusal(const std::string &text, const std::string &reason);

}  // namespace differential
