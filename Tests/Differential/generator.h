// Random valid messages, filled through C++ reflection.
#pragma once

#include <google/protobuf/message.h>

#include "random.h"

namespace differential {

// Fills an empty message with fields of every kind that its type has, extreme values and unknown fields among them.
// `required` fields are mostly, but not always, set.
void fill(google::protobuf::Message &message, Random &random);

}  // namespace differential
