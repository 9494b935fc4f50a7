// Python's protobuf in a separate process. See oracle.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace differential {

struct OracleRequest {
    char kind;  // see json_oracle.py and text_oracle.py
    std::string type;
    std::string text;
    std::string encoded;
};

struct OracleAnswer {
    bool accepted = false;
    std::string result;
};

class Oracle {
public:
    // Starts python3 with the script. Throws std::runtime_error when that fails.
    Oracle(const std::string &script, const std::string &descriptor_set_path);
    ~Oracle();
    Oracle(const Oracle &) = delete;
    Oracle &operator=(const Oracle &) = delete;

    // Throws std::runtime_error when the process has ended.
    std::vector<OracleAnswer> ask(const std::vector<OracleRequest> &requests);

private:
    void write(const std::string &bytes);
    std::string read(size_t count);
    size_t read_number();

    pid_t process_ = -1;
    int input_ = -1;
    int output_ = -1;
};

}  // namespace differential
