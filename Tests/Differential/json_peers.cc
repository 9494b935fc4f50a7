#include "json_peers.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "textual_messages.h"

namespace differential {

namespace {

google::protobuf::util::TypeResolver *resolver() {
    static std::unique_ptr<google::protobuf::util::TypeResolver> made(
        google::protobuf::util::NewTypeResolverForDescriptorPool(url_prefix, dynamic_pool()));
    return made.get();
}

}  // namespace

std::optional<std::string> parse_json_with_cpp(const MessageType &type, const std::string &text, std::string &reason) {
    std::string encoded;
    auto status = google::protobuf::util::JsonToBinaryString(resolver(), url_of(type), text, &encoded);
    reason = status.ToString();
    if (!status.ok()) return std::nullopt;
    return encoded;
}

std::optional<std::string> print_json_with_cpp(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings) {
    // Its option for fields that have their default prints those with presence, too.
    google::protobuf::util::JsonPrintOptions options;
    options.always_print_enums_as_ints = settings.enums_as_numbers;
    options.preserve_proto_field_names = settings.proto_names;
    std::string text;
    auto status = google::protobuf::util::BinaryToJsonString(resolver(), url_of(type), encoded, &text, options);
    if (!status.ok()) return std::nullopt;
    return text;
}

}  // namespace differential
