// Variants of JSON texts.
#pragma once

#include <string>

#include "random.h"

namespace differential {

// A variant of `text`, which is valid JSON; `other` is another valid text, to splice from.
std::string mutate_json(const std::string &text, const std::string &other, Random &random);

}  // namespace differential
