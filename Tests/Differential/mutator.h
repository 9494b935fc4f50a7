// Variants of encoded messages: some still valid, some like those of an attacker.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "random.h"

namespace differential {

// A variant of `bytes`, an encoded message of the type; `other` is another one of the same type, to splice from.
std::string mutate(
    const google::protobuf::Descriptor *type, std::string_view bytes, std::string_view other, Random &random);

}  // namespace differential
