// Compares the engine's JSON with C++ libprotobuf and Python's protobuf.
#pragma once

#include <string>
#include <vector>

#include "textual_run.h"

namespace differential {

class JSONRun : public TextualRun {
public:
    JSONRun(std::vector<MessageType> types, Oracle &oracle, uint64_t seed);

protected:
    PrintSettings some_settings(Random &random) override;
    std::string test_message(const MessageType &type, const std::string &encoded, Random &random) override;
    std::string mutate(const std::string &text, const std::string &other, Random &random) override;
    OracleAnswer parse_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown) override;
    const Exceptions &exceptions() override;
    void ask_about_printed(const Pending &pending) override;
    void judge_printed(const Pending &pending, const OracleAnswer &python) override;

private:
    std::string test_variant(
        const MessageType &type, const std::string &encoded, const PrintSettings &settings, Random &random);
    std::string test_cpp_text(const MessageType &type, const std::string &encoded, const PrintSettings &settings);
};

}  // namespace differential
