// The form of the lists of known differences between the engine and its peers.
#pragma once

#include <string>
#include <vector>

#include "oracle.h"
#include "textual_engine.h"

namespace differential {

// The outcome of one text for the engine and for a peer.
struct Comparison {
    const std::string &text;
    const Parsed &engine;
    const OracleAnswer &peer;
    bool ignores_unknown;
};

// An intended difference.
struct Exception {
    const char *name;
    const char *reason;
    bool (*applies)(const Comparison &comparison);
};

// All intended differences from one peer.
struct Exceptions {
    std::vector<Exception> refusals;     // why only the engine refuses a text
    std::vector<Exception> acceptances;  // why only the peer refuses it
    std::vector<Exception> contents;     // why both accept it, but read different messages
};

// The exception that explains a difference; NULL if there is none.
const Exception *explain(const Exceptions &exceptions, const Comparison &comparison);

// The field in the engine's failure; NULL if it is the message itself.
const LifelineField *failed_field(const Comparison &comparison);

// Whether the text or a part of it matches a POSIX extended regular expression.
bool contains(std::string text, const char *pattern);
bool matches(const std::string &text, const std::string &pattern);

// Whether the peer's reason for refusing contains the words.
bool peer_says(const Comparison &comparison, const char *words);

// A difference of contents from Python, in any format.
inline const Exception rounded_twice{
    "a float that is rounded twice",
    "The number below half of the way from the largest float to the next. Python reads it as a double first, which is "
    "half of the way, and then rounds up, to infinity.",
    [](const Comparison &comparison) { return contains(comparison.text, "\\.40282356779733"); }};

// Only Python refuses it, in any format.
inline const Exception required_in_any{
    "required fields in an Any",
    "Parsing checks no required fields; the caller may. Python cannot encode such a message for an Any.",
    [](const Comparison &comparison) { return peer_says(comparison, "missing required"); }};

}  // namespace differential
