// The differences between the implementations that are known and meant, each with its reason. All others are failures.
#pragma once

#include "engine.h"
#include "types.h"
#include "wire.h"

namespace differential {

// What the engine and C++ libprotobuf made of one input.
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
    // Whether nothing of the difference is left when all tags, lengths and varints are written in their shortest form.
    // It is checked.
    bool goes_away_in_shortest_form;
};

// The exception that explains why one side accepts what the other refuses; NULL when there is none.
const Exception *explain_acceptance(const Comparison &comparison);

// The exception that explains why both accept the input, but may read different messages; NULL when there is none.
const Exception *explain_content(const Comparison &comparison);

// Whether libprotobuf-c reads such an input as the others do.
bool protobuf_c_agrees(const WireFacts &facts);

}  // namespace differential
