#include "text_peers.h"

#include <memory>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "peers.h"

namespace differential {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

namespace {

// Finds messages in a google.protobuf.Any behind any prefix, also in messages without a generated class. To the engine,
// extensions are unknown fields.
class Finder : public TextFormat::Finder {
public:
    const Descriptor *FindAnyType(const Message &, const std::string &, const std::string &name) const override {
        return dynamic_pool()->FindMessageTypeByName(name);
    }

    const google::protobuf::FieldDescriptor *FindExtension(Message *, const std::string &) const override {
        return nullptr;
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
    constexpr int deepest_message = 10'000;
    printer.PrintToString(*parse_with_cpp(type, encoded, deepest_message), &text);
    return text;
}

}  // namespace differential
