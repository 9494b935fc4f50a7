// Messages as JSON and text format can hold them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "random.h"
#include "textual_engine.h"
#include "types.h"

namespace differential {

// Stands in front of the name of a message in a google.protobuf.Any.
constexpr char url_prefix[] = "type.googleapis.com";

std::string url_of(const MessageType &type);

// C++'s deterministic serialisation of an encoded message, also of those in its google.protobuf.Any; nothing when it is
// not valid.
std::optional<std::string> canonical_content(const MessageType &type, std::string_view encoded);

// The same without unknown fields.
std::optional<std::string> known_content(const MessageType &type, std::string_view encoded);

// A random message that the format can hold, with every NaN the same. For JSON, mostly, also without unknown fields,
// and with those messages of google.protobuf in their range that have a form of their own.
std::string generate_for(
    TextualFormat format, const std::vector<MessageType> &types, const MessageType &type, Random &random);

}  // namespace differential
