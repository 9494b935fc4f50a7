// The differences between our JSON and Python's that are known and meant, each with its reason. All others are
// failures.
#pragma once

#include <string>

#include "json_engine.h"
#include "json_oracle.h"

namespace differential {

// The outcome of one text for the engine and for Python.
struct JSONComparison {
    const std::string &text;
    const JSONParsed &engine;
    const OracleAnswer &python;
    bool ignores_unknown;
};

struct JSONException {
    const char *name;
    const char *reason;
    bool (*applies)(const JSONComparison &comparison);
};

// The exception that explains why only the engine refuses the text; NULL when there is none.
const JSONException *explain_refusal(const JSONComparison &comparison);

// The exception that explains why only Python refuses the text; NULL when there is none.
const JSONException *explain_acceptance(const JSONComparison &comparison);

// The exception that explains why both accept the text, but read different messages; NULL when there is none.
const JSONException *explain_content(const JSONComparison &comparison);

// Whether only Python refuses to print a message, which we print as this text, and why that is meant.
bool explain_printing(const std::string &text, const OracleAnswer &python);

// The name of the exception that explains why C++ libprotobuf refuses, with this reason, a text that we print; NULL
// when there is none.
const char *explain_cpp_refusal(const std::string &text, const std::string &reason);

}  // namespace differential
