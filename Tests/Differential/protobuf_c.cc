#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "peers.h"

namespace differential {

namespace {

// Descriptors that libprotobuf-c can unpack with.
//
// For a proto3 string with string_as_bytes, protoc-gen-c 1.4.1 writes protobuf_c_empty_string, an array of one char, as
// its default, but the type `bytes`, whose default is a ProtobufCBinaryData. libprotobuf-c would copy 16 bytes from
// there. So these are copies of the generated descriptors without such defaults.
class Descriptors {
public:
    const ProtobufCMessageDescriptor *usable(const ProtobufCMessageDescriptor *generated) {
        auto [place, is_new] = copies_.emplace(generated, nullptr);
        if (!is_new) return place->second;
        ProtobufCMessageDescriptor &copy = messages_.emplace_back(*generated);
        place->second = &copy;  // known before its fields are looked at: types refer to themselves
        auto &fields = fields_.emplace_back(generated->fields, generated->fields + generated->n_fields);
        for (ProtobufCFieldDescriptor &field : fields) {
            if (field.type == PROTOBUF_C_TYPE_BYTES) field.default_value = nullptr;
            if (field.type != PROTOBUF_C_TYPE_MESSAGE) continue;
            field.descriptor = usable(static_cast<const ProtobufCMessageDescriptor *>(field.descriptor));
        }
        copy.fields = fields.data();
        return &copy;
    }

private:
    std::map<const ProtobufCMessageDescriptor *, const ProtobufCMessageDescriptor *> copies_;
    std::deque<ProtobufCMessageDescriptor> messages_;  // whose elements stay where they are
    std::deque<std::vector<ProtobufCFieldDescriptor>> fields_;
};

}  // namespace

std::optional<std::string> repack_with_protobuf_c(const MessageType &type, std::string_view input) {
    static Descriptors descriptors;
    // A copy of exactly the input's size, so that AddressSanitizer detects each read beyond it.
    std::vector<uint8_t> copy(input.begin(), input.end());
    std::unique_ptr<ProtobufCMessage, void (*)(ProtobufCMessage *)> message(
        protobuf_c_message_unpack(descriptors.usable(type.c_descriptor), nullptr, copy.size(), copy.data()),
        [](ProtobufCMessage *unpacked) { protobuf_c_message_free_unpacked(unpacked, nullptr); });
    if (message == nullptr) return std::nullopt;
    std::string packed(protobuf_c_message_get_packed_size(message.get()), '\0');
    protobuf_c_message_pack(message.get(), reinterpret_cast<uint8_t *>(packed.data()));
    return packed;
}

}  // namespace differential
