// Variants of texts in a format that is a tree: some still valid, some as an attacker would send them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "random.h"

namespace differential {

// A value of a valid text, and the key in front of it.
struct TextualNode {
    char kind = 0;  // '{', '[', or 0 for a token
    std::string key;
    std::string token;
    std::vector<TextualNode> children;
};

// How a format writes such trees, and what may stand in them.
struct TextualSyntax {
    TextualNode (*read)(const std::string &text);
    std::string (*write)(const TextualNode &root, Random &random);
    std::string (*some_token)(Random &random);  // numbers and strings, well-formed or not
    std::string (*some_text)(Random &random);   // between quotes
    std::string (*some_key)(Random &random);
    std::string_view bytes;  // those that mean something
};

// One of the list's words.
template <size_t count>
std::string one_of(const char *const (&list)[count], Random &random) {
    return list[random.below(count)];
}

// A variant of `text`, which is valid; `other` is another valid text, to splice from.
std::string mutate_textual(
    const TextualSyntax &syntax, const std::string &text, const std::string &other, Random &random);

}  // namespace differential
