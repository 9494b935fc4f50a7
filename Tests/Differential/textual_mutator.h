// Variants of texts in a tree format: some still valid, some like those of an attacker.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "random.h"

namespace differential {

// A value of a valid text, and its key.
struct TextualNode {
    char kind = 0;  // '{', '[', or 0 for a token
    std::string key;
    std::string token;
    std::vector<TextualNode> children;
};

// The syntax of a format for such trees, and their possible contents.
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

// A variant of the valid text `text`. `other` is another valid text, to splice from.
std::string mutate_textual(
    const TextualSyntax &syntax, const std::string &text, const std::string &other, Random &random);

}  // namespace differential
