// The known and intended differences between the implementations, each with its reason. All others are failures.
#pragma once

#include "engine.h"
#include "types.h"
#include "wire.h"

namespace differential {

// The results of the engine and C++ libprotobuf for one input.
struct Comparison {
    const MessageType &type;
    const EngineResult &engine;
    bool cpp_accepts;
    const WireFacts &facts;
};

struct Exception {
    const char *name;
    const char *reason;
    bool (*applies)(const Comparison &comparison);
    // Whether the difference disappears when all tags, lengths and varints are written in their shortest form. This is
    // checked.
    bool goes_away_in_shortest_form;
};

// The exception that explains why only one side accepts the input; NULL if there is none.
const Exception *explain_acceptance(const Comparison &comparison);

// The exception that explains why both accept the input, but may read different messages; NULL if there is none.
const Exception *explain_content(const Comparison &comparison);

// Whether libprotobuf-c reads such an input like the others.
bool protobuf_c_agrees(const WireFacts &facts);

}  // namespace differential
