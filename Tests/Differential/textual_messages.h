// Messages that JSON and text format can represent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "random.h"
#include "textual_engine.h"
#include "types.h"

namespace differential {

// The prefix of a message's name in a google.protobuf.Any.
constexpr char url_prefix[] = "type.googleapis.com";

std::string url_of(const MessageType &type);

// C++'s deterministic serialisation of an encoded message, also of those in its google.protobuf.Any; nothing when it is
// not valid.
std::optional<std::string> canonical_content(const MessageType &type, std::string_view encoded);

// The same without unknown fields.
std::optional<std::string> known_content(const MessageType &type, std::string_view encoded);

// A random message that the format can represent, in which all NaNs are equal. For JSON, mostly also without unknown
// fields, and with the messages of google.protobuf that have a special form within their range.
std::string generate_for(
    TextualFormat format, const std::vector<MessageType> &types, const MessageType &type, Random &random);

}  // namespace differential
