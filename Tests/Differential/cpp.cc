#include "peers.h"

#include <map>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace differential {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// A string with the same order as the key.
std::string sortable_key(const Message &entry) {
    const Reflection *reflection = entry.GetReflection();
    const FieldDescriptor *key = entry.GetDescriptor()->map_key();
    constexpr uint64_t sign = uint64_t{1} << 63;
    uint64_t bits = 0;
    switch (key->cpp_type()) {
        case FieldDescriptor::CPPTYPE_STRING:
            return reflection->GetString(entry, key);
        case FieldDescriptor::CPPTYPE_BOOL:
            bits = reflection->GetBool(entry, key);
            break;
        case FieldDescriptor::CPPTYPE_INT32:
            bits = sign ^ static_cast<uint64_t>(reflection->GetInt32(entry, key));
            break;
        case FieldDescriptor::CPPTYPE_INT64:
            bits = sign ^ static_cast<uint64_t>(reflection->GetInt64(entry, key));
            break;
        case FieldDescriptor::CPPTYPE_UINT32:
            bits = reflection->GetUInt32(entry, key);
            break;
        default:
            bits = reflection->GetUInt64(entry, key);
            break;
    }
    std::string big_endian;
    for (int shift = 56; shift >= 0; shift -= 8) big_endian += static_cast<char>(bits >> shift);
    return big_endian;
}

void make_map(Message &message, const FieldDescriptor *field) {
    const Reflection *reflection = message.GetReflection();
    std::map<std::string, std::unique_ptr<Message>> last;
    for (int index = 0; index < reflection->FieldSize(message, field); index += 1) {
        const Message &entry = reflection->GetRepeatedMessage(message, field, index);
        auto copy = std::unique_ptr<Message>(entry.New());
        copy->CopyFrom(entry);
        copy->GetReflection()->MutableUnknownFields(copy.get())->Clear();  // a map has no place for them
        last[sortable_key(entry)] = std::move(copy);
    }
    reflection->ClearField(&message, field);
    for (auto &[key, entry] : last) reflection->AddAllocatedMessage(&message, field, entry.release());
}

// A DynamicMessage keeps the entries of its maps unchanged until the map is read. This makes the maps of generated
// classes: sorted, with the last entry of each key.
void make_maps(Message &message) {
    const Reflection *reflection = message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection->ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
        if (field->message_type() == nullptr) continue;
        if (!field->is_repeated()) {
            make_maps(*reflection->MutableMessage(&message, field));
            continue;
        }
        for (int index = 0; index < reflection->FieldSize(message, field); index += 1) {
            make_maps(*reflection->MutableRepeatedMessage(&message, field, index));
        }
        if (field->is_map()) make_map(message, field);
    }
}

}  // namespace

std::unique_ptr<Message> parse_with_cpp(const MessageType &type, std::string_view input, int maximum_depth) {
    std::unique_ptr<Message> message(type.prototype->New());
    auto *bytes = reinterpret_cast<const uint8_t *>(input.data());
    google::protobuf::io::CodedInputStream stream(bytes, static_cast<int>(input.size()));
    stream.SetRecursionLimit(maximum_depth);
    if (!message->MergePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) return nullptr;
    if (type.is_dynamic) make_maps(*message);
    return message;
}

std::string canonical(const Message &message) {
    std::string bytes;
    {
        google::protobuf::io::StringOutputStream stream(&bytes);
        google::protobuf::io::CodedOutputStream output(&stream);
        output.SetSerializationDeterministic(true);
        message.SerializePartialToCodedStream(&output);
    }
    return bytes;
}

}  // namespace differential
