// Compares the engine's text format with C++ libprotobuf and Python's protobuf.
#pragma once

#include <string>
#include <vector>

#include "textual_run.h"

namespace differential {

class TextRun : public TextualRun {
public:
    TextRun(std::vector<MessageType> types, Oracle &oracle, uint64_t seed);

protected:
    PrintSettings some_settings(Random &random) override;
    std::string test_message(const MessageType &type, const std::string &encoded, Random &random) override;
    std::string mutate(const std::string &text, const std::string &other, Random &random) override;
    OracleAnswer parse_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown) override;
    const Exceptions &exceptions() override;
    void judge_by_cpp(const Pending &pending) override;
    void ask_about_printed(const Pending &pending) override;

private:
    std::string test_variant(
        const MessageType &type, const std::string &encoded, const PrintSettings &settings, Random &random);
    std::string test_unknown_fields(const MessageType &type, const std::string &encoded) const;
};

}  // namespace differential
