#include "textual_mutator.h"

#include <algorithm>

namespace differential {

namespace {

using Node = TextualNode;
using Syntax = TextualSyntax;

// "user_id" for "userId", and vice versa.
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

std::string some_key(const Syntax &syntax, const std::vector<Node *> &nodes, Random &random) {
    for (int tries = 0; tries < 10; tries += 1) {
        const std::string &key = nodes[random.below(nodes.size())]->key;
        if (!key.empty()) return key;
    }
    return syntax.some_key(random);
}

void change_token(const Syntax &syntax, Node &node, Random &random) {
    node.children.clear();
    node.kind = 0;
    bool is_string = !node.token.empty() && node.token[0] == '"';
    switch (random.below(8)) {
        case 0:  // a number in quotes, or not
            node.token = is_string ? node.token.substr(1, node.token.size() - 2) : "\"" + node.token + "\"";
            break;
        case 1: node.token = is_string ? with_escape(node.token) : node.token + "e0"; break;
        case 2:
            node.token = is_string ? "\"" + syntax.some_text(random) + node.token.substr(1) : node.token + ".0";
            break;
        default: node.token = syntax.some_token(random); break;
    }
}

void mutate_children(
    const Syntax &syntax, Node &node, const std::vector<Node *> &nodes, const Node &donor, Random &random) {
    std::vector<Node> &children = node.children;
    auto place = [&] { return children.begin() + static_cast<ptrdiff_t>(random.below(children.size() + 1)); };
    if (children.empty() || random.one_in(6)) {
        Node copy = donor;
        if (copy.key.empty() || random.one_in(3)) copy.key = some_key(syntax, nodes, random);
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
            children[index].key = random.one_in(2) ? some_key(syntax, nodes, random) : syntax.some_key(random);
            break;
        case 6: children[index].key = with_escape(children[index].key); break;
        default: {
            Node token;
            token.key = children[index].key;
            token.token = syntax.some_token(random);
            children[index] = std::move(token);
            break;
        }
    }
}

std::string mutate_tree(
    const Syntax &syntax, const std::string &text, const std::string &other, Random &random) {
    Node root = syntax.read(text);
    Node other_root = syntax.read(other);
    std::vector<Node *> donors;
    collect(other_root, donors);
    // Mostly one change, because a text is refused for its first error.
    for (size_t times = random.one_in(3) ? 1 + random.below(3) : 1; times > 0; times -= 1) {
        std::vector<Node *> nodes;
        collect(root, nodes);
        Node &node = *nodes[random.below(nodes.size())];
        const std::vector<Node *> &sources = random.one_in(2) ? donors : nodes;
        const Node &donor = *sources[random.below(sources.size())];
        if (node.kind == 0 || random.one_in(10)) {
            change_token(syntax, node, random);
        } else if (random.one_in(10)) {
            Node copy = donor;
            copy.key = node.key;
            node = std::move(copy);
        } else {
            Node copy = donor;  // it may be a part of `node`
            mutate_children(syntax, node, nodes, copy, random);
        }
    }
    return syntax.write(root, random);
}

std::string mutate_bytes(const Syntax &syntax, std::string text, Random &random) {
    for (size_t times = 1 + random.below(3); times > 0 && !text.empty(); times -= 1) {
        size_t position = random.below(text.size());
        size_t another = random.below(text.size());
        char byte = random.one_in(8) ? static_cast<char>(random.next())
                                     : syntax.bytes[random.below(syntax.bytes.size())];
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

std::string mutate_textual(
    const TextualSyntax &syntax, const std::string &text, const std::string &other, Random &random) {
    size_t way = random.below(16);
    if (way < 4) return mutate_bytes(syntax, text, random);
    std::string variant = mutate_tree(syntax, text, other, random);
    return way == 4 ? mutate_bytes(syntax, std::move(variant), random) : variant;
}

}  // namespace differential
