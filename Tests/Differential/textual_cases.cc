#include "textual_cases.h"

#include <fstream>
#include <stdexcept>

#include "fixed_cases.h"

namespace differential {

namespace {

// Removes and returns the first word of the line, and the space after it.
std::string take_word(std::string &line) {
    size_t space = line.find(' ');
    std::string word = line.substr(0, space);
    line = space == std::string::npos ? "" : line.substr(space + 1);
    return word;
}

PrintSettings settings_of(const std::string &word) {
    PrintSettings settings;
    if (word == ">names") settings.proto_names = true;
    else if (word == ">numbers") settings.enums_as_numbers = true;
    else if (word == ">int64") settings.int64_as_numbers = true;
    else if (word == ">absent") settings.absent_fields = true;
    else if (word == ">line") settings.in_one_line = true;
    else if (word != ">") throw std::runtime_error("unknown word " + word);
    return settings;
}

void read_line(std::string line, TextualCase current, std::vector<TextualCase> &cases) {
    std::string word = take_word(line);
    if (word[0] == '>') {
        if (cases.empty()) throw std::runtime_error("there is no text above");
        cases.back().printed.emplace_back(settings_of(word), read_escaped_text(line));
        return;
    }
    current.outcome = "accepted";
    if (word == "print") {
        current.kind = TextualCase::Kind::printed;
        current.text = bytes_of_hex(take_word(line));
        current.outcome = read_escaped_text(line);
    } else if (word == "=" || word == "<" || word == "<unknown") {
        current.ignores_unknown = word == "<unknown";
        current.text = read_escaped_text(line);
        if (word == "=") current.printed.emplace_back(PrintSettings{}, current.text);
    } else if (word == "!" || word == "!unknown") {
        current.ignores_unknown = word == "!unknown";
        current.outcome = take_word(line);
        current.text = read_escaped_text(line);
    } else {
        throw std::runtime_error("unknown word " + word);
    }
    cases.push_back(std::move(current));
}

}  // namespace

std::vector<TextualCase> read_textual_cases(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::vector<TextualCase> cases;
    TextualCase current;
    std::string line;
    while (std::getline(file, line)) {
        current.line += 1;
        if (line.empty() || line[0] == '#') continue;
        try {
            if (line.rfind("type ", 0) == 0) current.type = line.substr(5);
            else read_line(line, current, cases);
        } catch (const std::exception &error) {
            throw std::runtime_error(path + ":" + std::to_string(current.line) + ": " + error.what());
        }
    }
    return cases;
}

std::string read_escaped_text(const std::string &text) {
    std::string bytes;
    for (size_t index = 0; index < text.size(); index += 1) {
        if (text[index] != '%') {
            bytes += text[index];
        } else if (index + 1 < text.size() && text[index + 1] == '<') {
            size_t star = text.find('*', index);
            size_t end = text.find('>', index);
            if (star == std::string::npos || end == std::string::npos) {
                throw std::runtime_error("%<COUNT*TEXT> is expected");
            }
            size_t count = std::stoul(text.substr(index + 2, star - index - 2));
            for (; count > 0; count -= 1) bytes += text.substr(star + 1, end - star - 1);
            index = end;
        } else {
            bytes += bytes_of_hex(text.substr(index + 1, 2));
            index += 2;
        }
    }
    return bytes;
}

}  // namespace differential
