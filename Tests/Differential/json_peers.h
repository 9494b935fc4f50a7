// C++ libprotobuf's JSON.
#pragma once

#include <optional>
#include <string>

#include "textual_engine.h"
#include "types.h"

namespace differential {

// The encoded message that C++ libprotobuf reads from the text; nothing, and the reason, if it refuses the text.
std::optional<std::string> parse_json_with_cpp(const MessageType &type, const std::string &text, std::string &reason);

// Nothing when C++ libprotobuf refuses to print the encoded message.
std::optional<std::string> print_json_with_cpp(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings);

}  // namespace differential
