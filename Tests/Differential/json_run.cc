#include "json_run.h"

#include <algorithm>
#include <set>

#include "check.h"
#include "engine.h"
#include "json_exceptions.h"
#include "json_mutator.h"
#include "json_peers.h"
#include "textual_messages.h"

namespace differential {

namespace {

bool reaches_group(const google::protobuf::Descriptor *type, std::set<const google::protobuf::Descriptor *> &seen) {
    if (!seen.insert(type).second) return false;
    for (int index = 0; index < type->field_count(); index++) {
        const google::protobuf::FieldDescriptor *field = type->field(index);
        if (field->type() == google::protobuf::FieldDescriptor::TYPE_GROUP) return true;
        if (field->message_type() != nullptr && reaches_group(field->message_type(), seen)) return true;
    }
    return false;
}

// When C++ libprotobuf 3.21 reads JSON, it writes groups without their end, also those in a google.protobuf.Any.
bool may_have_groups(const MessageType &type, const std::string &text) {
    std::set<const google::protobuf::Descriptor *> seen;
    return text.find("test.proto2.Groups") != std::string::npos || reaches_group(type.descriptor(), seen);
}

// C++ libprotobuf 3.21 neither prints nor reads extensions in JSON.
bool may_have_extensions(const std::string &text) { return text.find("\"[") != std::string::npos; }

// C++ libprotobuf has no option for its limit.
constexpr size_t deepest_text_of_cpp = 90;

size_t depth_of(const std::string &text) {
    size_t depth = 0;
    size_t deepest = 0;
    bool in_string = false;
    for (size_t index = 0; index < text.size(); index += 1) {
        char byte = text[index];
        if (byte == '"') in_string = !in_string;
        if (in_string && byte == '\\') index += 1;
        if (in_string) continue;
        if (byte == '{' || byte == '[') deepest = std::max(deepest, depth += 1);
        if ((byte == '}' || byte == ']') && depth > 0) depth -= 1;
    }
    return deepest;
}

char print_kind(const PrintSettings &settings) {
    return static_cast<char>('0' + settings.proto_names + 2 * settings.enums_as_numbers + 4 * settings.absent_fields);
}

// Whether two fields have the same name in JSON, which proto2 allows. JSON is then ambiguous.
bool has_clashing_names(const MessageType &type) {
    std::set<std::string> names;
    const auto *descriptor = type.descriptor();
    for (int index = 0; index < descriptor->field_count(); index += 1) {
        if (!names.insert(descriptor->field(index)->json_name()).second) return true;
    }
    return false;
}

}  // namespace

JSONRun::JSONRun(std::vector<MessageType> types, Oracle &oracle, uint64_t seed)
    : TextualRun(TextualFormat::json, std::move(types), oracle, seed) {
    remove_types(has_clashing_names);
}

PrintSettings JSONRun::some_settings(Random &random) {
    PrintSettings settings;
    settings.proto_names = random.one_in(4);
    settings.absent_fields = random.one_in(4);
    settings.enums_as_numbers = random.one_in(4);
    settings.int64_as_numbers = random.one_in(4);
    return settings;
}

std::string JSONRun::mutate(const std::string &text, const std::string &other, Random &random) {
    return mutate_json(text, other, random);
}

OracleAnswer JSONRun::parse_with_cpp(const MessageType &type, const std::string &text, bool) {
    std::string reason;
    std::optional<std::string> encoded = parse_json_with_cpp(type, text, reason);
    return {encoded.has_value(), encoded.value_or(reason)};
}

const Exceptions &JSONRun::exceptions() { return json_exceptions(); }

void JSONRun::ask_about_printed(const Pending &pending) { pending_.push_back(pending); }

void JSONRun::judge_printed(const Pending &pending, const OracleAnswer &python) {
    const std::string &text = pending.request.text;
    bool both_refuse = !pending.printed.accepted() && !python.accepted && python.result[0] == '!';
    if (both_refuse) return count("not printable");
    if (pending.printed.accepted() && python.accepted) return count("printed");
    if (pending.printed.accepted() && explain_printing(text, python)) {
        return count("capitals beyond ASCII in a FieldMask");
    }
    disagree(
        *pending.type, "",
        "Python prints it otherwise (options " + std::string(1, pending.request.kind) + ")\n  message: "
            + hex(pending.request.encoded) + "\n  ours: " + name_of(pending.printed.status) + " " + visible(text)
            + "\n  Python: " + visible(python.result),
        pending.origin);
}

std::string JSONRun::test_message(const MessageType &type, const std::string &encoded, Random &random) {
    std::string problem = test_variant(type, encoded, {}, random);
    if (!problem.empty()) return problem;
    return test_variant(type, encoded, some_settings(random), random);
}

std::string JSONRun::test_variant(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings, Random &random) {
    Printed printed = print(type, encoded, settings, random.below(200));
    // Python always has quotes around 64 bits.
    if (!settings.int64_as_numbers) {
        Pending pending{&type, {print_kind(settings), type.name, printed.text, encoded}, {}, printed, ""};
        pending.origin = current_origin();
        pending_.push_back(std::move(pending));
    }
    if (!printed.accepted()) return "";
    std::string expected = canonical_content(type, encoded).value();
    std::string problem = problem_of_reading("we", type, printed.text, {}, expected);
    if (!problem.empty()) return problem;
    bool is_for_cpp = depth_of(printed.text) < deepest_text_of_cpp && !may_have_groups(type, printed.text)
                      && !may_have_extensions(printed.text);
    if (!is_for_cpp) return "";
    std::string text = "\n  text: " + visible(printed.text);
    std::string reason;
    std::optional<std::string> by_cpp = parse_json_with_cpp(type, printed.text, reason);
    const char *exception = by_cpp ? nullptr : explain_cpp_refusal(printed.text, reason);
    if (exception != nullptr) count(exception);
    else if (!by_cpp) return "C++ refuses what we print: " + reason + text;
    else if (canonical_content(type, *by_cpp) != expected) {
        return "C++ reads another message from what we print: " + hex(*by_cpp) + text;
    }
    return test_cpp_text(type, encoded, settings);
}

std::string JSONRun::test_cpp_text(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings) {
    std::optional<std::string> text = print_json_with_cpp(type, encoded, settings);
    if (!text) return "C++ cannot print what we print";
    return problem_of_reading("C++", type, *text, {}, canonical_content(type, encoded).value());
}

}  // namespace differential
