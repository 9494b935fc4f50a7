// Compares the implementations on one input.
#pragma once

#include <string>
#include <string_view>

#include "types.h"

namespace differential {

struct Verdict {
    std::string outcome;       // the category: "accepted", "refused", or the name of an exception
    std::string disagreement;  // the results of both sides; empty when they agree
    LifelineStatus status;     // ours
    bool compared_with_protobuf_c = false;
};

Verdict check(const MessageType &type, std::string_view input);

std::string hex(std::string_view bytes);

// The command prefix that runs these tests on the architecture of their build.
#if defined(__aarch64__)
inline constexpr char differential_command[] = "scripts/differential --aarch64";
#else
inline constexpr char differential_command[] = "scripts/differential";
#endif

}  // namespace differential
