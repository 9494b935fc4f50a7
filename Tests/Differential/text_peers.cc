#include "text_peers.h"

#include <memory>
#include <optional>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include "peers.h"
#include "wire.h"

namespace differential {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using google::protobuf::UnknownFieldSet;

namespace {

// Finds messages in a google.protobuf.Any with any prefix, also for types without a generated class.
class Finder : public TextFormat::Finder {
public:
    const Descriptor *FindAnyType(const Message &, const std::string &, const std::string &name) const override {
        return dynamic_pool()->FindMessageTypeByName(name);
    }
};

class Errors : public google::protobuf::io::ErrorCollector {
public:
    void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string &message) override {
        if (first.empty()) first = std::to_string(line) + ":" + std::to_string(column) + ": " + message;
    }

    std::string first;
};

const Finder finder;

constexpr int deepest_message = 10'000;

bool is_message_to_us(const std::string &bytes) {
    std::optional<WireMessage> message = read_wire(nullptr, bytes);
    if (!message) return false;
    const WireFacts &facts = message->facts;
    return !facts.tenth_byte_over_one && !facts.tag_over_32_bits && !facts.length_over_five_bytes;
}

bool holds_messages_to_cpp_only(const UnknownFieldSet &fields) {
    for (int index = 0; index < fields.field_count(); index += 1) {
        const google::protobuf::UnknownField &field = fields.field(index);
        if (field.type() == google::protobuf::UnknownField::TYPE_GROUP) {
            if (holds_messages_to_cpp_only(field.group())) return true;
        } else if (field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
            UnknownFieldSet content;
            if (!content.ParseFromString(field.length_delimited())) continue;
            if (!is_message_to_us(field.length_delimited()) || holds_messages_to_cpp_only(content)) return true;
        }
    }
    return false;
}

}  // namespace

OracleAnswer parse_text_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown) {
    Errors errors;
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    parser.SetFinder(&finder);
    parser.AllowPartialMessage(true);
    parser.AllowUnknownField(ignores_unknown);
    parser.AllowUnknownExtension(ignores_unknown);
    std::unique_ptr<Message> message(type.prototype->New());
    if (!parser.ParseFromString(text, message.get())) return {false, errors.first};
    return {true, canonical(*message)};
}

std::string print_text_with_cpp(const MessageType &type, const std::string &encoded, const CppTextSettings &settings) {
    TextFormat::Printer printer;
    printer.SetFinder(&finder);
    printer.SetExpandAny(true);
    printer.SetSingleLineMode(settings.in_one_line);
    printer.SetUseShortRepeatedPrimitives(settings.short_lists);
    printer.SetUseUtf8StringEscaping(settings.keeps_letters);
    printer.SetHideUnknownFields(!settings.unknown_fields);
    std::string text;
    printer.PrintToString(*parse_with_cpp(type, encoded, deepest_message), &text);
    return text;
}

UnknownFields unknown_fields_with_cpp(const MessageType &type, const std::string &encoded) {
    std::unique_ptr<Message> message = parse_with_cpp(type, encoded, deepest_message);
    const UnknownFieldSet &fields = message->GetReflection()->GetUnknownFields(*message);
    UnknownFields unknown;
    fields.SerializeToString(&unknown.encoded);
    TextFormat::PrintUnknownFieldsToString(fields, &unknown.text);
    unknown.holds_messages_to_cpp_only = holds_messages_to_cpp_only(fields);
    return unknown;
}

}  // namespace differential
