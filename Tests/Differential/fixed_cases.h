// Inputs with an expected outcome, from a text file.
#pragma once

#include <string>
#include <vector>

namespace differential {

struct FixedCase {
    size_t line;
    std::string type;
    std::string expected;  // a name that name_of(LifelineStatus) gives
    std::string input;
};

// Reads the file; throws std::runtime_error with file, line and reason when it is not written as hostile.txt explains.
std::vector<FixedCase> read_fixed_cases(const std::string &path);

// The bytes of an even number of hexadecimal digits; throws std::runtime_error for anything else.
std::string bytes_of_hex(const std::string &digits);

}  // namespace differential
