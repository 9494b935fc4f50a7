#include "text_exceptions.h"

#include <algorithm>
#include <cctype>

namespace differential {

namespace {

bool has_surrogates(const Comparison &comparison) {
    return contains(comparison.text, "\\\\(u|U0000)[dD][89a-fA-F]");
}

const Exception too_deep{
    "too deep", "The engine's limit is that of the binary format.",
    [](const Comparison &comparison) { return comparison.engine.status == LIFELINE_TOO_DEEP; }};

bool is_twice_in_entry(const Comparison &comparison) {
    return comparison.engine.status == LIFELINE_DUPLICATE_FIELD
           && (comparison.engine.message->flags & LIFELINE_MESSAGE_MAP_ENTRY) != 0;
}

bool is_space(unsigned char byte) { return std::isspace(byte) != 0; }

// Whether a URL in brackets is anything but words with dots, a slash, and words with dots.
bool has_odd_url(const Comparison &comparison) {
    const std::string &text = comparison.text;
    const std::string name = "[a-zA-Z_][a-zA-Z0-9_]*(\\.[a-zA-Z_][a-zA-Z0-9_]*)*";
    for (size_t start = text.find('['); start != std::string::npos; start = text.find('[', start + 1)) {
        std::string url = text.substr(start + 1, text.find(']', start) - start - 1);
        url.erase(std::remove_if(url.begin(), url.end(), is_space), url.end());
        if (contains(url, "^[^\"'{}<>:#]+/[^\"'{}<>:#]+$") && !matches(url, name + "/" + name)) return true;
    }
    return false;
}

// Whether C++ does not find a field by the name of a group's field: `Message type "a.B" has no field named "c".`
bool names_group(const std::string &reason) {
    std::vector<std::string> quoted;
    for (size_t start = reason.find('"'); start != std::string::npos; start = reason.find('"', start + 1)) {
        size_t end = reason.find('"', start + 1);
        quoted.push_back(reason.substr(start + 1, end - start - 1));
        start = end;
    }
    const auto *type = quoted.size() == 2 ? dynamic_pool()->FindMessageTypeByName(quoted[0]) : nullptr;
    const auto *field = type == nullptr ? nullptr : type->FindFieldByName(quoted[1]);
    return field != nullptr && field->type() == google::protobuf::FieldDescriptor::TYPE_GROUP;
}

const std::vector<Exception> python_refusals = {
    {"a google.protobuf.Any that is written twice",
     "It may be there once, as to C++. Python takes the last one.",
     [](const Comparison &comparison) {
         const LifelineMessageTable *table = comparison.engine.message;
         return comparison.engine.status == LIFELINE_DUPLICATE_FIELD && comparison.engine.field_number == 0
                && table->well_known == LIFELINE_WELL_KNOWN_ANY;
     }},
    {"defaults that are twice in an entry",
     "A map's entry has its key and value once each. Python takes them again where they were the default.",
     is_twice_in_entry},
    {"Python's NUL",
     "It may stand in no literal and no comment, as to C++. Python takes it.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX && comparison.text[comparison.engine.offset] == 0;
     }},
    {"spaces in the words of URLs",
     "They may stand beside dots and slashes only, as to C++. Python joins all that they separate.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX
                && contains(comparison.text, "\\[[^]\"]*[a-zA-Z0-9_-][ \t\n\r\v\f]+[a-zA-Z0-9_-][^]\"]*\\]");
     }},
    too_deep,
};

const std::vector<Exception> python_acceptances = {
    {"text that is not UTF-8",
     "Only C++ programs pass it: Python and Swift have strings. It may stand in comments, and for bytes.",
     [](const Comparison &comparison) {
         return peer_says(comparison, "codec can't decode") && !peer_says(comparison, "Couldn't parse string");
     }},
    {"strings of proto2 that are not UTF-8",
     "They may hold any bytes here, as in C++. Python needs UTF-8.",
     [](const Comparison &comparison) {
         return peer_says(comparison, "Couldn't parse string: 'utf-8' codec can't decode");
     }},
    {"Python's surrogate pairs",
     "Two escapes of halves of a surrogate pair are one letter, as to C++. Python takes no such halves.",
     has_surrogates},
    {"brackets in ignored fields",
     "They may hold any name or URL. Python only takes extensions, only of messages that may have some, and none of "
     "another message.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown
                && (peer_says(comparison, "does not have extensions") || peer_says(comparison, "Expected \"]\"")
                    || peer_says(comparison, "does not extend message type")
                    || peer_says(comparison, "Expected identifier."));
     }},
    {"lists in ignored fields",
     "Lists of messages need no colon. Python only knows that of known fields.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown && peer_says(comparison, "Expected \"{\"")
                && contains(comparison.text, "\\[");
     }},
    {"a separator behind a google.protobuf.Any",
     "A comma or semicolon may end any field, as to C++. Python knows it not behind the message in an Any.",
     [](const Comparison &comparison) {
         return peer_says(comparison, "Expected identifier or number, got ,")
                || peer_says(comparison, "Expected identifier or number, got ;");
     }},
    required_in_any,
    {"large numbers in ignored fields",
     "What is ignored has no range. Python reads it as 64 bits.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown && contains(comparison.peer.result, "Invalid field value: -?[0-9]");
     }},
    {"a minus apart from its number",
     "There may be spaces between them, as to C++. Python takes the minus alone for a number.",
     [](const Comparison &comparison) { return contains(comparison.text, "-[ \t\n\r\v\f#]"); }},
};

const std::vector<Exception> python_contents = {rounded_twice};

const std::vector<Exception> cpp_refusals = {
    {"strings that are not UTF-8 in C++",
     "C++ only logs a warning.",
     [](const Comparison &comparison) { return comparison.engine.status == LIFELINE_INVALID_UTF8; }},
    too_deep,
    {"half of a surrogate pair in C++",
     "It has no form in UTF-8. C++ encodes it all the same.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX && has_surrogates(comparison);
     }},
    {"letters beyond Unicode in C++",
     "It takes escapes of more than 0x10FFFF.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX
                && contains(comparison.text, "\\\\U00(1[1-9a-fA-F]|[2-9a-fA-F])");
     }},
    {"defaults that are twice in an entry",
     "A map's entry has its key and value once each. C++ takes them again where they were the default, in some maps.",
     is_twice_in_entry},
    {"numbers in the names of extensions in C++",
     "They are words. While C++ ignores them, it takes numbers, too.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX && comparison.ignores_unknown
                && contains(comparison.text, "\\[[^]]*[0-9]");
     }},
    {"octal escapes above a byte in C++",
     "It takes the byte that is left.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX && contains(comparison.text, "\\\\[4-7][0-7][0-7]");
     }},
};

const std::vector<Exception> cpp_acceptances = {
    {"brackets in ignored fields",
     "They may hold any name or URL. C++ takes names only.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown && peer_says(comparison, "Expected \"]\", found");
     }},
    {"URLs in C++",
     "They may have several slashes and more than letters, as to Python. To C++ 3.21 there are two names, and a slash.",
     has_odd_url},
    {"open enums of messages of proto2 in C++",
     "Whether an enum is open is up to the file that declares it. To C++ 3.21 it is up to the message.",
     [](const Comparison &comparison) { return peer_says(comparison, "Unknown enumeration value of"); }},
    {"groups by the names of their fields",
     "They go by the names of their types or of their fields, as to Python. C++ 3.21 knows the first only.",
     [](const Comparison &comparison) { return names_group(comparison.peer.result); }},
    {"lists in ignored fields",
     "Lists of messages need no colon, and lists may be empty. C++ only knows that of known fields.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown
                && (peer_says(comparison, "Expected \"{\", found \"[\"")
                    || peer_says(comparison, "unexpected token: ]"));
     }},
    {"a separator behind an ignored field, or a google.protobuf.Any",
     "A comma or semicolon may end any field. C++ knows it not behind fields that it does not know, and messages in an "
     "Any.",
     [](const Comparison &comparison) {
         return peer_says(comparison, "Expected identifier, got: ;")
                || peer_says(comparison, "Expected identifier, got: ,");
     }},
    {"minus zero in C++",
     "It is zero. C++ takes no minus before a number that has no sign.",
     [](const Comparison &comparison) { return peer_says(comparison, "Expected integer, got: -"); }},
    {"an f behind infinity",
     "It stands behind all numbers, as to Python. C++ takes it behind digits only.",
     [](const Comparison &comparison) {
         return contains(comparison.peer.result, "(Expected double, got|Invalid float number): (inf|nan)");
     }},
};

}  // namespace

const Exceptions &text_exceptions() {
    static const Exceptions exceptions{python_refusals, python_acceptances, python_contents};
    return exceptions;
}

const Exceptions &text_exceptions_of_cpp() {
    static const Exceptions exceptions{cpp_refusals, cpp_acceptances, {}};
    return exceptions;
}

}  // namespace differential
