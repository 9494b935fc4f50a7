// The implementations that the engine is compared with: C++ libprotobuf and libprotobuf-c.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "types.h"

namespace differential {

// C++ libprotobuf's parse of an input, `required` fields unchecked; NULL when it refuses the input.
std::unique_ptr<google::protobuf::Message> parse_with_cpp(
    const MessageType &type, std::string_view input, int maximum_depth = 100);

// C++ libprotobuf's deterministic serialisation: fields by number, entries of maps by key.
std::string canonical(const google::protobuf::Message &message);

// The bytes that libprotobuf-c packs after unpacking the input; nothing if it refuses the input.
std::optional<std::string> repack_with_protobuf_c(const MessageType &type, std::string_view input);

}  // namespace differential
