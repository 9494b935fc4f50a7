#include "fixed_cases.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "wire.h"

namespace differential {

namespace {

// nest:TAG:COUNT: COUNT length-delimited fields of that tag inside each other, the innermost empty.
std::string nested(const std::string &tag, size_t count) {
    std::string reversed;  // built from the inside, so that a deep one takes linear time
    for (size_t level = 0; level < count; level += 1) {
        std::string prefix = tag;
        append_varint(prefix, reversed.size());
        reversed.append(prefix.rbegin(), prefix.rend());
    }
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
}

std::string repeated(const std::string &bytes, size_t count) {
    std::string all;
    all.reserve(bytes.size() * count);
    for (; count > 0; count -= 1) all += bytes;
    return all;
}

std::string bytes_of_word(const std::string &word) {
    if (word.rfind("nest:", 0) == 0) {
        size_t colon = word.find(':', 5);
        if (colon == std::string::npos) throw std::runtime_error("nest:TAG:COUNT is expected, not " + word);
        return nested(bytes_of_hex(word.substr(5, colon - 5)), std::stoul(word.substr(colon + 1)));
    }
    size_t star = word.find('*');
    if (star == std::string::npos) return bytes_of_hex(word);
    return repeated(bytes_of_hex(word.substr(0, star)), std::stoul(word.substr(star + 1)));
}

int value_of(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    throw std::runtime_error(std::string("not a hexadecimal digit: ") + digit);
}

}  // namespace

std::vector<FixedCase> read_fixed_cases(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::vector<FixedCase> cases;
    std::string line;
    for (size_t number = 1; std::getline(file, line); number += 1) {
        std::istringstream words(line.substr(0, line.find('#')));
        FixedCase fixed;
        if (!(words >> fixed.type)) continue;
        fixed.line = number;
        try {
            if (!(words >> fixed.expected)) throw std::runtime_error("no outcome");
            for (std::string word; words >> word;) fixed.input += bytes_of_word(word);
        } catch (const std::exception &error) {
            throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
        }
        cases.push_back(std::move(fixed));
    }
    return cases;
}

std::string bytes_of_hex(const std::string &digits) {
    if (digits.size() % 2 != 0) throw std::runtime_error("an odd number of hexadecimal digits: " + digits);
    std::string bytes;
    for (size_t index = 0; index < digits.size(); index += 2) {
        bytes += static_cast<char>(value_of(digits[index]) << 4 | value_of(digits[index + 1]));
    }
    return bytes;
}

}  // namespace differential
