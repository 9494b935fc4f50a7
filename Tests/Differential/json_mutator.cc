#include "json_mutator.h"

#include <algorithm>

#include "textual_mutator.h"

namespace differential {

namespace {

using Node = TextualNode;

// MARK: Reading

class Reader {
public:
    explicit Reader(const std::string &text) : text_(text) {}

    Node value() {
        skip_space();
        Node node;
        char first = text_[next_];
        if (first != '{' && first != '[') {
            node.token = token();
            return node;
        }
        node.kind = first;
        char end = first == '{' ? '}' : ']';
        next_ += 1;
        for (skip_space(); text_[next_] != end; skip_space()) {
            std::string key;
            if (first == '{') {
                key = token();
                skip_space();
                next_ += 1;
            }
            node.children.push_back(value());
            node.children.back().key = key;
            skip_space();
            if (text_[next_] == ',') next_ += 1;
        }
        next_ += 1;
        return node;
    }

private:
    void skip_space() {
        while (text_[next_] == ' ' || text_[next_] == '\n') next_ += 1;
    }

    std::string token() {
        size_t start = next_;
        if (text_[start] == '"') {
            for (next_ += 1; text_[next_] != '"'; next_ += 1) {
                if (text_[next_] == '\\') next_ += 1;
            }
            next_ += 1;
        } else {
            next_ = std::min(text_.find_first_of(",]} \n", next_), text_.size());
        }
        return text_.substr(start, next_ - start);
    }

    const std::string &text_;
    size_t next_ = 0;
};

void append_spaces(std::string &text, Random &random) {
    static const char spaces[] = " \n\r\t";
    while (random.one_in(8)) text += spaces[random.below(4)];
}

void write(const Node &node, bool spaced, Random &random, std::string &text) {
    if (spaced) append_spaces(text, random);
    if (node.kind == 0) {
        text += node.token;
        return;
    }
    text += node.kind;
    bool is_first = true;
    for (const Node &child : node.children) {
        if (!is_first) text += ',';
        is_first = false;
        if (spaced) append_spaces(text, random);
        if (node.kind == '{') {
            text += child.key.empty() ? "\"\"" : child.key;
            if (spaced) append_spaces(text, random);
            text += ':';
        }
        write(child, spaced, random, text);
        if (spaced) append_spaces(text, random);
    }
    text += node.kind == '{' ? '}' : ']';
}

// MARK: Values

const char *const numbers[] = {
    "0", "-0", "1", "-1", "1.0", "1.5", "1e2", "1E+2", "1e-2", "100e-2", "0.5e1", "127", "2147483647", "2147483648",
    "-2147483648", "-2147483649", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e19",
    "1.8446744073709551615e19", "184467440737095516150e-1", "9007199254740993", "0.1", "1e308", "1.8e308", "-1e309",
    "1e-400", "3.4028235e38", "3.4028235677973366e38", "3.5e38", "1e999999999999", "-1e-999999999999",
    "123456789012345678901234567890", "0.000000000000000000000000000001", "16777217", "8.5899973e9", "1e-45", "7e-46",
    "01", "-", "-01", "+1", ".5", "1.", "1.e1", "1e", "1e+", "0x10", "NaN", "Infinity", "-Infinity", "1_0", "--1",
    "00"};

const char *const texts[] = {
    "", "abc", "\\u0000", "\\ud83d\\ude00", "\\ud800", "\\udc00", "\\ud83dx", "\\ud83d\\n", "\\uD83D\\uD83D", "\\q",
    "\\u12", "\\u00E9", "\\/", "\\u0022", "NaN", "Infinity", "-Infinity", "inf", "nan", "null", "true", "false", " ",
    " 1", "1 ", "+1", "AQ==", "AQ", "A", "AQI", "AQI=", "AQ=", "-_-_", "+/+/", "+/-_", "A===", "=", "A Q=", "AQ==AQ==",
    "AR==", "COLOR_RED", "color_red", "COLOR_NOPE", "ALIAS_UNO", "ALIAS_DUE", "NULL_VALUE", "NESTED_ONE",
    "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-01:00",
    "2000-02-29T12:00:00.5+05:30", "1900-02-29T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01t00:00:00z",
    "2024-01-01T00:00:00", "2024-1-1T00:00:00Z", "2024-01-01T00:00:60Z", "0s", "1s", "-1.5s", "1.123456789s",
    "1.1234567891s", "315576000000s", "315576000001s", "-315576000000.000000001s", "1", "s", "1.s", ".5s", "+1s",
    "-0.5s",
    "a", "a,bC", "a_b", "a,,b", "a,", ",", "A", "aB.cD", "type.googleapis.com/google.protobuf.Duration",
    "type.googleapis.com/test.scalars.proto3.Point", "type.googleapis.com/google.protobuf.Empty", "no/such.Type",
    "google.protobuf.Duration", "/", "é", "\xEF\xBB\xBF", "\x7F", "0", "-1", "@type", "value"};

const char *const others[] = {
    "null", "true", "false", "{}", "[]", "[null]", "[[]]", "[1,2]", "{\"a\":1}", "{\"a\":null}", "nul", "True", "TRUE",
    "{\"@type\":\"type.googleapis.com/google.protobuf.Duration\",\"value\":\"1s\"}",
    "{\"value\":\"1s\",\"@type\":\"type.googleapis.com/google.protobuf.Duration\"}",
    "{\"x\":1,\"@type\":\"type.googleapis.com/test.scalars.proto3.Point\",\"label\":\"a\"}",
    "{\"@type\":\"type.googleapis.com/google.protobuf.Value\",\"value\":null}",
    "{\"@type\":\"type.googleapis.com/google.protobuf.Duration\"}", "{\"@type\":1}", "{\"value\":1}"};

std::string some_token(Random &random) {
    switch (random.below(5)) {
        case 0:
        case 1: return one_of(numbers, random);
        case 2: return "\"" + one_of(numbers, random) + "\"";
        case 3: return "\"" + one_of(texts, random) + "\"";
        default: return one_of(others, random);
    }
}

const char *const keys[] = {
    "@type", "value", "[test.extending.a_bool]", "[test.extending.numbers]", "[test.extending.weight]",
    "[test.extending.pair]", "[test.extending.unit]", "[test.extending.Scope.scope]", "[test.extending.Entry.entry]",
    "[test.extending.Entry]", "[test.extending.heavy]", "[test.extending.Weight]", "[test.extending.none]", "[]", "[a",
    "a]", "[a.b]", "[ a.b ]", "test.extending.a_bool"};

std::string some_key(Random &random) {
    return "\"" + (random.one_in(2) ? one_of(texts, random) : one_of(keys, random)) + "\"";
}

std::string write_some(const Node &root, Random &random) {
    std::string text;
    write(root, random.one_in(3), random, text);
    return text;
}

constexpr char interesting[] = "\"\"\\\\{}[]:,,0123456789.-+eEunt \n\t\r\0\x01\x1F\x7F\x80\xC0\xED\xFF'/@_=";

}  // namespace

std::string mutate_json(const std::string &text, const std::string &other, Random &random) {
    static const TextualSyntax syntax{
        [](const std::string &text) { return Reader(text).value(); },
        write_some,
        some_token,
        [](Random &random) { return one_of(texts, random); },
        some_key,
        {interesting, sizeof interesting - 1}};
    return mutate_textual(syntax, text, other, random);
}

}  // namespace differential
