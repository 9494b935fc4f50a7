// The tested message types in each implementation.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "lifeline.h"

namespace differential {

struct MessageType {
    std::string name;  // "package.Outer.Inner"
    const LifelineMessageTable *table;
    const ProtobufCMessageDescriptor *c_descriptor;
    const google::protobuf::Message *prototype;
    bool is_dynamic;  // C++ has no generated class

    const google::protobuf::Descriptor *descriptor() const { return prototype->GetDescriptor(); }
};

// Every type that we have a table for, except map entries and the messages that represent extensions. For C++ it uses
// the generated class if there is one, and a DynamicMessage with the descriptors in the file for types whose names are
// invalid in C++. The process ends with a message if a table has no counterpart.
std::vector<MessageType> load_types(const std::string &descriptor_set_path);

// Finds an extension by its number or its name; a LifelineFindExtension. load_types must have been called.
const LifelineMessageTable *find_extension(
    void *, const LifelineMessageTable *extended, uint32_t number, const char *name, size_t count);

// All of those types, from the descriptors in the file. load_types must have been called.
const google::protobuf::DescriptorPool *dynamic_pool();

}  // namespace differential
