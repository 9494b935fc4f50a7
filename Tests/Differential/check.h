// Compares what the implementations make of one input.
#pragma once

#include <string>
#include <string_view>

#include "types.h"

namespace differential {

struct Verdict {
    std::string outcome;       // what it counts as: "accepted", "refused", or the name of an exception
    std::string disagreement;  // what each side said; empty when they agree
    LifelineStatus status;     // ours
    bool compared_with_protobuf_c = false;
};

Verdict check(const MessageType &type, std::string_view input);

std::string hex(std::string_view bytes);

// What runs these tests for the architecture that they were built for.
#if defined(__aarch64__)
inline constexpr char differential_command[] = "scripts/differential --aarch64";
#else
inline constexpr char differential_command[] = "scripts/differential";
#endif

}  // namespace differential
