#include "json_mutator.h"

#include <algorithm>
#include <vector>

namespace differential {

namespace {

// A value of valid JSON, and the key in front of it in an object.
struct Node {
    char kind = 0;  // '{', '[', or 0 for a token
    std::string key;
    std::string token;
    std::vector<Node> children;
};

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

template <size_t count>
std::string one_of(const char *const (&list)[count], Random &random) {
    return list[random.below(count)];
}

std::string some_token(Random &random) {
    switch (random.below(5)) {
        case 0:
        case 1: return one_of(numbers, random);
        case 2: return "\"" + one_of(numbers, random) + "\"";
        case 3: return "\"" + one_of(texts, random) + "\"";
        default: return one_of(others, random);
    }
}

// "user_id" for "userId", and the other way round.
std::string other_case(const std::string &key) {
    std::string changed;
    for (size_t index = 0; index < key.size(); index += 1) {
        char letter = key[index];
        if (letter >= 'A' && letter <= 'Z') {
            changed += '_';
            changed += static_cast<char>(letter - 'A' + 'a');
        } else if (letter == '_' && index + 1 < key.size() && key[index + 1] >= 'a' && key[index + 1] <= 'z') {
            index += 1;
            changed += static_cast<char>(key[index] - 'a' + 'A');
        } else {
            changed += letter;
        }
    }
    return changed;
}

// The first letter as an escape.
std::string with_escape(const std::string &quoted) {
    static const char digits[] = "0123456789abcdef";
    if (quoted.size() < 3 || quoted[1] == '\\' || static_cast<unsigned char>(quoted[1]) >= 0x80) return quoted;
    std::string escape = {'\\', 'u', '0', '0', digits[quoted[1] >> 4], digits[quoted[1] & 15]};
    return quoted.substr(0, 1) + escape + quoted.substr(2);
}

// MARK: Mutations

void collect(Node &node, std::vector<Node *> &nodes) {
    nodes.push_back(&node);
    for (Node &child : node.children) collect(child, nodes);
}

std::string some_key(const std::vector<Node *> &nodes, Random &random) {
    for (int tries = 0; tries < 10; tries += 1) {
        const std::string &key = nodes[random.below(nodes.size())]->key;
        if (!key.empty()) return key;
    }
    return random.one_in(2) ? "\"@type\"" : "\"value\"";
}

void change_token(Node &node, Random &random) {
    node.children.clear();
    node.kind = 0;
    bool is_string = !node.token.empty() && node.token[0] == '"';
    switch (random.below(8)) {
        case 0:  // a number in quotes, or not
            node.token = is_string ? node.token.substr(1, node.token.size() - 2) : "\"" + node.token + "\"";
            break;
        case 1: node.token = is_string ? with_escape(node.token) : node.token + "e0"; break;
        case 2: node.token = is_string ? "\"" + one_of(texts, random) + node.token.substr(1) : node.token + ".0"; break;
        default: node.token = some_token(random); break;
    }
}

void mutate_children(Node &node, const std::vector<Node *> &nodes, const Node &donor, Random &random) {
    std::vector<Node> &children = node.children;
    auto place = [&] { return children.begin() + static_cast<ptrdiff_t>(random.below(children.size() + 1)); };
    if (children.empty() || random.one_in(6)) {
        Node copy = donor;
        if (copy.key.empty() || random.one_in(3)) copy.key = some_key(nodes, random);
        children.insert(place(), std::move(copy));
        return;
    }
    size_t index = random.below(children.size());
    size_t another = random.below(children.size());
    switch (random.below(8)) {
        case 0: children.erase(children.begin() + static_cast<ptrdiff_t>(index)); break;
        case 1: {
            Node copy = children[index];
            if (random.one_in(2)) copy.key = other_case(copy.key);
            children.insert(place(), std::move(copy));
            break;
        }
        case 2: std::swap(children[index], children[another]); break;
        case 3: std::reverse(children.begin(), children.end()); break;
        case 4: children[index].key = other_case(children[index].key); break;
        case 5:
            children[index].key = random.one_in(2) ? some_key(nodes, random) : "\"" + one_of(texts, random) + "\"";
            break;
        case 6: children[index].key = with_escape(children[index].key); break;
        default: {
            Node token;
            token.key = children[index].key;
            token.token = some_token(random);
            children[index] = std::move(token);
            break;
        }
    }
}

std::string mutate_tree(const std::string &text, const std::string &other, Random &random) {
    Node root = Reader(text).value();
    Node other_root = Reader(other).value();
    std::vector<Node *> donors;
    collect(other_root, donors);
    // One change, mostly: a text is refused for the first thing that is wrong.
    for (size_t times = random.one_in(3) ? 1 + random.below(3) : 1; times > 0; times -= 1) {
        std::vector<Node *> nodes;
        collect(root, nodes);
        Node &node = *nodes[random.below(nodes.size())];
        const std::vector<Node *> &sources = random.one_in(2) ? donors : nodes;
        const Node &donor = *sources[random.below(sources.size())];
        if (node.kind == 0 || random.one_in(10)) {
            change_token(node, random);
        } else if (random.one_in(10)) {
            Node copy = donor;
            copy.key = node.key;
            node = std::move(copy);
        } else {
            Node copy = donor;  // it may be a part of `node`
            mutate_children(node, nodes, copy, random);
        }
    }
    std::string changed;
    write(root, random.one_in(3), random, changed);
    return changed;
}

std::string mutate_bytes(std::string text, Random &random) {
    static const char interesting[] = "\"\"\\\\{}[]:,,0123456789.-+eEunt \n\t\r\0\x01\x1F\x7F\x80\xC0\xED\xFF'/@_=";
    for (size_t times = 1 + random.below(3); times > 0 && !text.empty(); times -= 1) {
        size_t position = random.below(text.size());
        size_t another = random.below(text.size());
        char byte = random.one_in(8) ? static_cast<char>(random.next())
                                     : interesting[random.below(sizeof interesting - 1)];
        switch (random.below(6)) {
            case 0: text[position] = byte; break;
            case 1: text.insert(position, 1, byte); break;
            case 2: text.erase(position, 1 + random.below(random.one_in(4) ? 16 : 1)); break;
            case 3: text.insert(position, text.substr(another, random.below(24))); break;
            case 4: std::swap(text[position], text[another]); break;
            default: random.one_in(2) ? text.resize(position) : text.push_back(byte); break;
        }
    }
    return text;
}

}  // namespace

std::string mutate_json(const std::string &text, const std::string &other, Random &random) {
    size_t way = random.below(16);
    if (way < 4) return mutate_bytes(text, random);
    std::string variant = mutate_tree(text, other, random);
    return way == 4 ? mutate_bytes(std::move(variant), random) : variant;
}

}  // namespace differential
