// C++ libprotobuf's JSON, and messages as JSON can hold them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_engine.h"
#include "random.h"
#include "types.h"

namespace differential {

// The encoded message that C++ libprotobuf reads from the text; nothing, and the reason, when it refuses the text.
std::optional<std::string> parse_json_with_cpp(const MessageType &type, const std::string &text, std::string &reason);

// Nothing when C++ libprotobuf refuses to print the encoded message.
std::optional<std::string> print_json_with_cpp(
    const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings);

// C++'s deterministic serialisation of an encoded message, also of those in its google.protobuf.Any; nothing when it is
// not valid.
std::optional<std::string> canonical_content(const MessageType &type, std::string_view encoded);

// A random message that JSON can hold, mostly: without unknown fields and extensions, every NaN the same, and messages
// of google.protobuf that have a JSON form in their range.
std::string generate_for_json(const std::vector<MessageType> &types, const MessageType &type, Random &random);

}  // namespace differential
