#include "json_exceptions.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace differential {

namespace {

// MARK: The place where the engine stopped

// The token there, with its quotes.
std::string token(const Comparison &comparison) {
    std::string_view rest = comparison.text;
    rest.remove_prefix(std::min(comparison.engine.offset, rest.size()));
    size_t start = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
    rest.remove_prefix(start);
    if (rest.empty()) return "";
    if (rest[0] != '"') return std::string(rest.substr(0, rest.find_first_of(" \t\r\n,:]}")));
    for (size_t index = 1; index < rest.size(); index += 1) {
        if (rest[index] == '\\') index += 1;
        else if (rest[index] == '"') return std::string(rest.substr(0, index + 1));
    }
    return std::string(rest);
}

bool is_quoted(const std::string &token) { return token.size() >= 2 && token[0] == '"'; }

// Escapes of ASCII are read.
std::string without_quotes(const std::string &token) {
    std::string text = is_quoted(token) ? token.substr(1, token.size() - 2) : token;
    for (size_t place = text.find("\\u00"); place != std::string::npos; place = text.find("\\u00", place + 1)) {
        text.replace(place, 6, 1, static_cast<char>(std::strtol(text.substr(place + 2, 4).c_str(), nullptr, 16)));
    }
    return text;
}

// The expected message; NULL if no message was expected.
const LifelineMessageTable *expected_message(const Comparison &comparison) {
    const LifelineField *named = failed_field(comparison);
    if (named == nullptr) return comparison.engine.message;
    if (named->presence == LIFELINE_PRESENCE_MAP) named = &named->message->fields[1];
    return named->type == LIFELINE_TYPE_MESSAGE ? named->message : nullptr;
}

bool expects(const Comparison &comparison, LifelineWellKnown well_known) {
    const LifelineMessageTable *table = expected_message(comparison);
    return table != nullptr && table->well_known == static_cast<uint32_t>(well_known);
}

bool expects_any_value(const Comparison &comparison) {
    return expects(comparison, LIFELINE_WELL_KNOWN_VALUE) || expects(comparison, LIFELINE_WELL_KNOWN_STRUCT)
           || expects(comparison, LIFELINE_WELL_KNOWN_LIST_VALUE);
}

// Whether a value of one of these types was expected: as a field, an element, a map's key or value, or in a wrapper.
template <typename Condition>
bool expects(const Comparison &comparison, const Condition &condition) {
    const LifelineField *named = failed_field(comparison);
    const LifelineMessageTable *table = comparison.engine.message;
    if (named == nullptr) {
        return table->well_known == LIFELINE_WELL_KNOWN_WRAPPER && condition(table->fields[0].type);
    }
    if (named->type != LIFELINE_TYPE_MESSAGE) return condition(named->type);
    if (named->presence == LIFELINE_PRESENCE_MAP) {
        table = named->message;
        if (condition(table->fields[0].type) || condition(table->fields[1].type)) return true;
        if (table->fields[1].type != LIFELINE_TYPE_MESSAGE) return false;
        named = &table->fields[1];
    }
    table = named->message;
    return table->well_known == LIFELINE_WELL_KNOWN_WRAPPER && condition(table->fields[0].type);
}

bool is_floating_point(uint8_t type) { return type == LIFELINE_TYPE_DOUBLE || type == LIFELINE_TYPE_FLOAT; }

bool is_bytes(uint8_t type) { return type == LIFELINE_TYPE_BYTES; }

bool is_integer(uint8_t type) {
    return !is_floating_point(type) && type != LIFELINE_TYPE_ENUM && !is_bytes(type) && type != LIFELINE_TYPE_BOOL
           && type != LIFELINE_TYPE_STRING && type != LIFELINE_TYPE_MESSAGE;
}

// MARK: Forms

bool is_number(const std::string &text) { return matches(text, "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?"); }

bool has_more_than_ascii(const std::string &text) {
    return std::any_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; });
}

// MARK: The lists

const std::vector<Exception> refusals = {
    {"Python's integers",
     "Python takes a string that is a number to its int() or float(), such as \"+1\", \"01\", \"1_0\" or \"\\t1\". "
     "ProtoJSON has the form of JSON's numbers, in quotes too.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, is_integer)
                && is_quoted(token(comparison)) && !is_number(without_quotes(token(comparison)));
     }},
    {"Python's decimal numbers",
     "Python takes a string that is a number to its float(), such as \"inf\", \"+1\" or \" 1\", and bools.",
     [](const Comparison &comparison) {
         std::string found = token(comparison);
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, is_floating_point)
                && ((is_quoted(found) && !is_number(without_quotes(found))) || found == "true" || found == "false");
     }},
    {"Python's overflow",
     "A number that is too large for its field is an error. Python makes it infinite when it is in quotes, an integer, "
     "or in a google.protobuf.Value.",
     [](const Comparison &comparison) {
         std::string found = token(comparison);
         if (comparison.engine.status != LIFELINE_OUT_OF_RANGE) return false;
         if (expects_any_value(comparison)) return is_number(found);
         return expects(comparison, is_floating_point) && (is_quoted(found) || !contains(found, "[.eE]"));
     }},
    {"Python's Base64",
     "Python passes over characters that are not of Base64, and takes any padding.",
     [](const Comparison &comparison) {
         std::string text = without_quotes(token(comparison));
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, is_bytes)
                && !matches(text, "([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2}(==)?|[A-Za-z0-9+/_-]{3}=?)?");
     }},
    {"Python's messages",
     "Python takes strings and arrays for messages, as the names of fields without values.",
     [](const Comparison &comparison) {
         std::string found = token(comparison);
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, LIFELINE_WELL_KNOWN_NONE)
                && (found[0] == '"' || found[0] == '[');
     }},
    {"Python's durations",
     "Python takes more than nine digits behind the point, and all that int() and float() take.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, LIFELINE_WELL_KNOWN_DURATION)
                && !matches(without_quotes(token(comparison)), "-?[0-9]+(\\.[0-9]{1,9})?s");
     }},
    {"Python's timestamps",
     "Python takes dates and offsets that are shorter than RFC 3339 has them, and offsets of more than a day.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_WRONG_KIND && expects(comparison, LIFELINE_WELL_KNOWN_TIMESTAMP)
                && !matches(
                    without_quotes(token(comparison)),
                    "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?"
                    "(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])");
     }},
    {"too deep",
     "Python's limit is higher in these tests, and it counts messages only, not arrays.",
     [](const Comparison &comparison) { return comparison.engine.status == LIFELINE_TOO_DEEP; }},
    {"a field by two names",
     "The JSON name and the name in the schema are of the same field, which may be there only once; likewise the keys "
     "of a map that are the same number. Python only finds the same name twice.",
     [](const Comparison &comparison) { return comparison.engine.status == LIFELINE_DUPLICATE_FIELD; }},
    {"a type's URL without a slash",
     "google.protobuf.Any needs one. Python takes the name alone.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_UNKNOWN_MESSAGE
                && contains(comparison.text, "@type\"[^\"]*\"[^\"/]*\"");
     }},
    {"an entry of a map in an Any",
     "It has a descriptor, but is no message that anyone has declared.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_UNKNOWN_MESSAGE && contains(comparison.text, "Entry\"");
     }},
    {"other members of an Any",
     "Beside \"@type\" and \"value\" Python passes over members of an Any whose message has a form of its own.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_UNKNOWN_FIELD && expects(comparison, LIFELINE_WELL_KNOWN_ANY);
     }},
    {"names in message sets",
     "An extension goes by its full name, or by its message's. Python takes any word behind the latter.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_UNKNOWN_FIELD
                && (comparison.engine.message->flags & LIFELINE_MESSAGE_SET) != 0
                && contains(token(comparison), "^\"\\[.+\\..+\\]\"$");
     }},
    {"half of a surrogate pair in ignored fields",
     "It has no form in UTF-8. Python does not look at what it ignores.",
     [](const Comparison &comparison) {
         return comparison.engine.status == LIFELINE_SYNTAX && comparison.ignores_unknown
                && contains(comparison.text, "\\\\u[dD][89a-fA-F]");
     }},
};

const std::vector<Exception> acceptances = {
    {"duplicate keys of ignored fields",
     "What is ignored cannot be ambiguous. Python reads all of it first.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown && peer_says(comparison, "duplicate key");
     }},
    {"brackets in ignored fields",
     "They may hold any name. Python takes them only in messages that may have extensions, and takes the extensions of "
     "all messages for that message's.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown
                && (peer_says(comparison, "does not have extensions")
                    || peer_says(comparison, "Extension doesn't match")
                    || contains(comparison.peer.result, "Failed to parse \\[[a-zA-Z_.]+\\] field"));
     }},
    {"rounded to the largest float",
     "A number that rounds to the largest float is read as it. Python refuses all that is above it.",
     [](const Comparison &comparison) { return peer_says(comparison, "Float value too"); }},
    {"an Any without a value",
     "One whose message has a form of its own, and no \"value\", holds the default, as to C++. Python needs it.",
     [](const Comparison &comparison) { return peer_says(comparison, "KeyError: 'value'"); }},
    required_in_any,
};

const std::vector<Exception> contents = {
    rounded_twice,
    {"capitals beyond ASCII in a FieldMask",
     "Names of fields are ASCII. Python puts \"_\" before capital letters of all alphabets.",
     [](const Comparison &comparison) {
         auto underscores = [](const std::string &text) { return std::count(text.begin(), text.end(), '_'); };
         return has_more_than_ascii(comparison.text)
                && underscores(comparison.peer.result) > underscores(comparison.engine.encoded);
     }},
    {"ignored names in message sets",
     "As above: Python does not ignore them.",
     [](const Comparison &comparison) {
         return comparison.ignores_unknown && contains(comparison.text, "\"\\[test\\.extending\\.Entry\\.")
                && comparison.peer.result.size() > comparison.engine.encoded.size();
     }},
};

}  // namespace

const Exceptions &json_exceptions() {
    static const Exceptions exceptions{refusals, acceptances, contents};
    return exceptions;
}

bool explain_printing(const std::string &text, const OracleAnswer &python) {
    // Python accepts capital letters of all alphabets.
    return has_more_than_ascii(text) && python.result.find("Fail to print FieldMask") != std::string::npos;
}

const char *explain_cpp_refusal(const std::string &text, const std::string &reason) {
    auto says = [&](const char *words) { return reason.find(words) != std::string::npos; };
    // We check no required fields here.
    if (says("missing field")) return "missing required fields in C++";
    // The JSON name of the field `_` is empty.
    if (says("Proto fields must have a name")) return "an empty name in C++";
    // C++ 3.21 does not read its own output.
    if (says("Cannot find field") && contains(text, "ListValue\",\"value\":\\[")) return "a list in an Any in C++";
    return nullptr;
}

}  // namespace differential
