// Variants of texts in protobuf's text format.
#pragma once

#include <string>

#include "random.h"

namespace differential {

// A variant of `text`, which the engine or C++ libprotobuf has printed. `other` is another one, to splice from.
std::string mutate_text(const std::string &text, const std::string &other, Random &random);

}  // namespace differential
