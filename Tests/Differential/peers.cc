#include "peers.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace differential {

using google::protobuf::Message;

std::unique_ptr<Message> parse_with_cpp(const MessageType &type, std::string_view input) {
    std::unique_ptr<Message> message(type.prototype->New());
    if (!message->ParsePartialFromArray(input.data(), static_cast<int>(input.size()))) return nullptr;
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

std::optional<std::string> repack_with_protobuf_c(const MessageType &type, std::string_view input) {
    // A copy of exactly the input's size, as the engine gets.
    std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
    std::copy(input.begin(), input.end(), copy.get());
    std::unique_ptr<ProtobufCMessage, void (*)(ProtobufCMessage *)> message(
        protobuf_c_message_unpack(type.c_descriptor, nullptr, input.size(), copy.get()),
        [](ProtobufCMessage *unpacked) { protobuf_c_message_free_unpacked(unpacked, nullptr); });
    if (message == nullptr) return std::nullopt;
    std::string packed(protobuf_c_message_get_packed_size(message.get()), '\0');
    protobuf_c_message_pack(message.get(), reinterpret_cast<uint8_t *>(packed.data()));
    return packed;
}

}  // namespace differential
