#include "text_mutator.h"

#include <algorithm>

#include "textual_mutator.h"

namespace differential {

namespace {

using Node = TextualNode;

// MARK: Reading

// Reads printed text, which has no lists, comments or angle brackets.
class Reader {
public:
    explicit Reader(const std::string &text) : text_(text) {}

    // Up to the end, or after the closing brace.
    Node message() {
        Node node;
        node.kind = '{';
        for (skip_space(); next_ < text_.size() && text_[next_] != '}'; skip_space()) {
            std::string key = word();
            skip_space();
            bool is_scalar = text_[next_] == ':';
            next_ += 1;
            if (is_scalar) skip_space();
            node.children.push_back(is_scalar ? scalar() : message());
            node.children.back().key = key;
        }
        next_ += 1;
        return node;
    }

private:
    void skip_space() {
        while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\n')) next_ += 1;
    }

    std::string word() {
        size_t start = next_;
        next_ = std::min(text_.find_first_of(": \n", next_), text_.size());
        return text_.substr(start, next_ - start);
    }

    Node scalar() {
        Node node;
        size_t start = next_;
        if (text_[start] == '"') {
            for (next_ += 1; text_[next_] != '"'; next_ += 1) {
                if (text_[next_] == '\\') next_ += 1;
            }
            next_ += 1;
            node.token = text_.substr(start, next_ - start);
        } else {
            node.token = word();
        }
        return node;
    }

    const std::string &text_;
    size_t next_ = 0;
};

// MARK: Writing

class Writer {
public:
    // A plain text has only one form. Other texts mix all equivalent forms.
    Writer(bool plain, Random &random) : plain_(plain), random_(random) {}

    void fields(const std::vector<Node> &nodes) {
        for (size_t index = 0; index < nodes.size();) {
            size_t end = index + 1;
            while (end < nodes.size() && nodes[end].key == nodes[index].key) end += 1;
            space();
            text += nodes[index].key;
            // Fields of the same name as a list, or lists of one or no element.
            if (sometimes(4) && (end - index > 1 || random_.one_in(4))) {
                list(nodes, index, end);
                index = end;
            } else {
                field(nodes[index]);
                index += 1;
            }
            if (sometimes(4)) text += random_.one_in(2) ? "," : ";";
            text += ' ';
        }
    }

    std::string text;

private:
    bool sometimes(size_t times) { return !plain_ && random_.one_in(times); }

    void space() {
        static const char *const spaces[] = {" ", "\n", "\t", "\r", "\v", "\f", "# \"{ }' comment\n", "#\n"};
        while (sometimes(8)) text += one_of(spaces, random_);
    }

    void field(const Node &node) {
        space();
        if (node.kind == 0 || sometimes(4)) text += ':';
        space();
        if (node.kind == 0 || plain_) text += ' ';
        value(node);
    }

    void list(const std::vector<Node> &nodes, size_t index, size_t end) {
        if (nodes[index].kind == 0 || random_.one_in(2)) text += ':';
        space();
        text += '[';
        if (random_.one_in(16)) index = end;
        for (; index < end; index += 1) {
            space();
            value(nodes[index]);
            space();
            if (index + 1 < end || random_.one_in(32)) text += ',';
        }
        text += ']';
    }

    void value(const Node &node) {
        if (node.kind == 0) return scalar(node.token);
        bool is_angled = sometimes(4);
        text += is_angled ? '<' : '{';
        if (plain_) text += ' ';
        fields(node.children);
        space();
        text += is_angled ? '>' : '}';
    }

    void scalar(const std::string &token) {
        bool is_literal = token.size() > 1 && token[0] == '"' && token.back() == '"';
        if (!is_literal || !sometimes(4)) {
            text += token;
            return;
        }
        // Several literals, and other quotes if the content needs no escapes.
        std::string content = token.substr(1, token.size() - 2);
        size_t cut = random_.below(content.size() + 1);
        std::string parts[] = {content.substr(0, cut), content.substr(cut)};
        bool is_letter_cut = !parts[1].empty() && (parts[1][0] & 0xC0) == 0x80;
        if (is_letter_cut || !is_whole(parts[0])) {
            text += token;
            return;
        }
        for (const std::string &part : parts) {
            char quote = random_.one_in(2) && part.find('\'') == std::string::npos ? '\'' : '"';
            text += quote + part + quote;
            space();
        }
    }

    // Whether no escape is cut at its end.
    static bool is_whole(const std::string &part) {
        size_t backslash = part.find_last_of('\\');
        return backslash == std::string::npos || part.size() - backslash > 10;
    }

    bool plain_;
    Random &random_;
};

std::string write_some(const Node &root, Random &random) {
    if (root.kind == 0) return root.token;
    Writer writer(random.one_in(2), random);
    writer.fields(root.children);
    return writer.text;
}

// MARK: Values

const char *const numbers[] = {
    "0", "-0", "1", "-1", "- 1", "-\n1", "+1", "1.0", "1.5", "1.", ".5", "-.5", "1.5f", "1.5F", "1f", "1e2", "1E+2",
    "1e-2f", "1.e1", "1e", "1e+", ".", "-", "-.", "1.2.3", "127", "2147483647", "2147483648", "-2147483648",
    "-2147483649", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "1e308",
    "1.8e308", "-1e309", "1e-400", "3.4028235e38", "3.4028235677973366e38", "3.5e38", "1e999999999999", "0.1",
    "16777217", "9007199254740993", "1e-45", "7e-46", "01", "-01", "017", "08", "0777777777777777777777",
    "01777777777777777777777", "02000000000000000000000", "00", "000", "00.5", "01.5", "01e1", "0f", "01f", "0x", "0x0",
    "0x1F", "0X1f", "-0x1", "0xg", "0x1.8", "0x1p3", "0xffffffff", "0x100000000", "0xffffffffffffffff",
    "0x10000000000000000", "0x7fffffff", "-0x80000000", "0x1f", "inf", "-inf", "Inf", "INF", "infinity", "-Infinity",
    "inff", "-inff", "infinityf", "nan", "NaN", "-nan", "nanf", "- inf", "NAN", "1_0", "--1", "1l", "1u", "true",
    "false", "True", "False", "TRUE", "t", "f", "yes", "2", "0x1", "0b1", "0o7", "1and"};

const char *const texts[] = {
    "", "abc", "\\a\\b\\f\\n\\r\\t\\v\\?\\\\\\'\\\"", "\\0", "\\01", "\\012", "\\0123", "\\377", "\\400", "\\777",
    "\\8", "\\x", "\\x4", "\\x41", "\\x411", "\\X41", "\\xg", "\\u00e9", "\\u00E", "\\u00e9a", "\\U0001F600",
    "\\U0001F60", "\\U00110000", "\\U0000d800", "\\ud83d\\ude00", "\\ud800", "\\udc00", "\\ud83dx", "\\ud83d\\n",
    "\\ud83d\\ud83d", "\\uD83D\\uDE00", "\\U0000d83d\\ude00", "\\ud83d\\U0000de00", "\\u0000", "\\q", "\\", "\\\\",
    "\\e", "\\xff", "\\xc3\\xa9", "\\303\\251", "\\xed\\xa0\\x80", "'", "é", "\xEF\xBB\xBF", "\x7F", "\t", "\n", "#",
    "{", "COLOR_RED", "inf", "1", "type.googleapis.com/google.protobuf.Duration", "no/such.Type", "\\x00", "\r"};

const char *const others[] = {
    "{}", "<>", "{ >", "< }", "[]", "[1]", "[1, 2]", "[1, 2,]", "[1 2]", "[,]", "[{}, <>]", "['a' 'b', \"c\"]",
    "COLOR_RED", "color_red", "COLOR_NOPE", "ALIAS_UNO", "ALIAS_DUE", "NULL_VALUE", "NESTED_ONE", "-COLOR_RED",
    "COLOR_RED-",
    "null", "'a'", "'a' \"b\"", "'a'\n# b\n'c'", "\"a\" 1", "\"a", "'a\n'", "{ x: 1 }", "{ seconds: 1 nanos: 2 }",
    "{ key: 1 value: 2 }", "{ key: \"a\" key: \"b\" }", "{ value { } }", "{ key: \"a\" }", "{ 1: 2 }",
    "{ [type.googleapis.com/google.protobuf.Duration] { seconds: 1 } }",
    "{ [type.googleapis.com/google.protobuf.Duration]: < seconds: 1 > }",
    "{ [type.googleapis.com/google.protobuf.Duration] { } [type.googleapis.com/google.protobuf.Empty] { } }",
    "{ type_url: \"a/b.C\" value: \"\\001\" }", "{ type_url: \"a\" type_url: \"a\" }", "{ value: \"\" value: \"\" }",
    "{ [type.googleapis.com/google.protobuf.Empty] { } value: \"a\" }",
    "{ value: \"a\" [type.googleapis.com/google.protobuf.Empty] { } }", "{ [a.b]: 1 }", "{ [a/no.Type] { } }"};

const char *const keys[] = {
    "a", "1", "2", "18", "value", "key", "type_url", "seconds", "[test.extending.a_bool]", "[test.extending.numbers]",
    "[test.extending.weight]", "[test.extending.pair]", "[test.extending.unit]", "[test.extending.Scope.scope]",
    "[test.extending.Entry.entry]", "[test.extending.Entry]", "[test.extending.heavy]", "[test.extending.Weight]",
    "[test.extending.none]", "[ test . extending.a_bool ]", "[a.b]", "[a.b.c]", "[a/b.c]", "[a.b/c/d]", "[/a]",
    "[a/]", "[]", "[a", "[ a . b ]", "[type.googleapis.com/google.protobuf.Duration]",
    "[type.googleapis.com/test.scalars.proto3.Point]", "[ type.googleapis.com / google.protobuf.Empty ]",
    "[type.googleapis.com/google.protobuf.Duration", "[a%20b/google.protobuf.Empty]", "[a%2/google.protobuf.Empty]",
    "[a-b~c/google.protobuf.Empty]", "[a/b/google.protobuf.Empty]", "[google.protobuf.Empty]", "a.b", "a-b", "\"a\"",
    "x y", "0x1", "1.5", "-1", "_", "é"};

std::string some_token(Random &random) {
    switch (random.below(6)) {
        case 0:
        case 1: return one_of(numbers, random);
        case 2: return "\"" + one_of(numbers, random) + "\"";
        case 3: return "\"" + one_of(texts, random) + "\"";
        case 4: return "'" + one_of(texts, random) + "'";
        default: return one_of(others, random);
    }
}

constexpr char interesting[] = "\"\"''\\\\{}<>[]:;,,#0123456789.-+eExXuUfinatf \n\t\r\v\0\x01\x7F\x80\xC0\xED\xFF/_=";

}  // namespace

std::string mutate_text(const std::string &text, const std::string &other, Random &random) {
    static const TextualSyntax syntax{
        [](const std::string &text) { return Reader(text).message(); },
        write_some,
        some_token,
        [](Random &random) { return one_of(texts, random); },
        [](Random &random) { return one_of(keys, random); },
        {interesting, sizeof interesting - 1}};
    return mutate_textual(syntax, text, other, random);
}

}  // namespace differential
