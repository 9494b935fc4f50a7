// Texts and messages with an expected outcome, from a text file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "textual_engine.h"

namespace differential {

struct TextualCase {
    enum class Kind { parsed, printed };

    size_t line = 0;
    std::string type;
    Kind kind = Kind::parsed;
    std::string text;     // a text to parse, or an encoded message to print
    std::string outcome;  // a name that name_of(LifelineStatus) gives, or the text that a message is printed as
    bool ignores_unknown = false;
    std::vector<std::pair<PrintSettings, std::string>> printed;  // of a text that is accepted
};

// Reads the file; throws std::runtime_error with file, line and reason when it is not written as json.txt and
// text.txt explain.
std::vector<TextualCase> read_textual_cases(const std::string &path);

// The bytes of a text with the escapes that json.txt and text.txt explain.
std::string read_escaped_text(const std::string &text);

}  // namespace differential
