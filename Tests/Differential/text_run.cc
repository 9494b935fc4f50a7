#include "text_run.h"

#include "check.h"
#include "engine.h"
#include "text_exceptions.h"
#include "text_mutator.h"
#include "text_peers.h"
#include "textual_messages.h"

namespace differential {

TextRun::TextRun(std::vector<MessageType> types, Oracle &oracle, uint64_t seed)
    : TextualRun(TextualFormat::text, std::move(types), oracle, seed) {}

PrintSettings TextRun::some_settings(Random &random) {
    PrintSettings settings;
    settings.in_one_line = random.one_in(2);
    settings.unknown_fields = random.one_in(4);
    return settings;
}

std::string TextRun::mutate(const std::string &text, const std::string &other, Random &random) {
    return mutate_text(text, other, random);
}

OracleAnswer TextRun::parse_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown) {
    return parse_text_with_cpp(type, text, ignores_unknown);
}

const Exceptions &TextRun::exceptions() { return text_exceptions(); }

void TextRun::judge_by_cpp(const Pending &pending) {
    bool ignores_unknown = pending.request.kind == 'I';
    OracleAnswer cpp = parse_with_cpp(*pending.type, pending.request.text, ignores_unknown);
    if (is_explained(pending, cpp, text_exceptions_of_cpp())) return;
    disagree(
        *pending.type, pending.request.text,
        "C++ reads it otherwise" + std::string(ignores_unknown ? ", ignoring unknown fields" : "") + "\n  ours:   "
            + describe(pending.engine) + "\n  C++:    " + describe(cpp),
        pending.origin);
}

void TextRun::ask_about_printed(const Pending &pending) {
    ParseSettings settings;
    settings.ignores_unknown = true;  // there may be numbers of fields
    if (pending.printed.accepted()) test_text(*pending.type, pending.printed.text, settings, pending.origin);
}

std::string TextRun::test_message(const MessageType &type, const std::string &encoded, Random &random) {
    PrintSettings known;
    known.unknown_fields = false;
    std::string problem = test_variant(type, encoded, known, random);
    if (problem.empty()) problem = test_variant(type, encoded, some_settings(random), random);
    return problem.empty() ? test_unknown_fields(type, encoded) : problem;
}

// We print them like C++, except for letters, which C++ escapes in unknown fields.
std::string TextRun::test_unknown_fields(const MessageType &type, const std::string &encoded) const {
    UnknownFields unknown = unknown_fields_with_cpp(type, encoded);
    std::string text = print(find("google.protobuf.Empty"), unknown.encoded, {}).text;
    std::string escaped;
    for (unsigned char byte : text) {
        if (byte >= 0x80) {
            escaped += {'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7))};
            escaped += static_cast<char>('0' + (byte & 7));
        } else {
            escaped += byte == '\'' ? "\\'" : std::string(1, static_cast<char>(byte));
        }
    }
    if (escaped == unknown.text || unknown.holds_messages_to_cpp_only) return "";
    return "C++ prints its unknown fields otherwise\n  ours: " + visible(text) + "\n  C++:  " + visible(unknown.text);
}

std::string TextRun::test_variant(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings, Random &random) {
    Printed printed = print(type, encoded, settings, random.below(200));
    if (!printed.accepted()) return "we cannot print it: " + std::string(name_of(printed.status));
    std::string expected = known_content(type, encoded).value();
    ParseSettings parse_settings;
    parse_settings.ignores_unknown = settings.unknown_fields;
    std::string problem = problem_of_reading("we", type, printed.text, parse_settings, expected);
    if (!problem.empty()) return problem;
    // So that both peers read the message, too.
    parse_settings.maximum_depth = deepest_text;
    test_text(type, printed.text, parse_settings, current_origin());

    CppTextSettings cpp_settings;
    cpp_settings.in_one_line = random.one_in(2);
    cpp_settings.short_lists = random.one_in(2);
    cpp_settings.keeps_letters = random.one_in(2);
    cpp_settings.unknown_fields = settings.unknown_fields;
    std::string text = print_text_with_cpp(type, encoded, cpp_settings);
    return problem_of_reading("C++", type, text, parse_settings, expected);
}

}  // namespace differential
