// Compares a textual format of the engine, JSON or text format, with its peers.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "oracle.h"
#include "random.h"
#include "textual_cases.h"
#include "textual_engine.h"
#include "textual_exceptions.h"
#include "types.h"

namespace differential {

// Texts of messages with a depth of 100 are deeper: arrays and google.protobuf.Any add levels.
constexpr uint32_t deepest_text = 1'000;

class TextualRun {
public:
    // The oracle must outlive the run.
    TextualRun(TextualFormat format, std::vector<MessageType> types, Oracle &oracle, uint64_t seed);
    virtual ~TextualRun() = default;

    // Reads the cases of a file that is written as json.txt or text.txt explains.
    void run_fixed_cases(const std::string &path);

    // Tests at least `count` generated inputs, or until the seconds have passed, unless those are 0.
    void run_generated(size_t inputs, double seconds);

    // Prints the results of all implementations for the text. Returns the process's status.
    int replay(const std::string &text, const std::string &type);

    // Prints one line. Returns the process's status.
    int report() const;

protected:
    // A text that waits for the oracle, or a message whose text does.
    struct Pending {
        const MessageType *type;
        OracleRequest request;
        Parsed engine;       // of a text
        Printed printed;     // of a message
        std::string origin;  // the place of a fixed case, or the number of the input
    };

    // MARK: For each format

    virtual PrintSettings some_settings(Random &random) = 0;

    // Prints the message in several ways and reads the texts. Returns the failures, or nothing.
    virtual std::string test_message(const MessageType &type, const std::string &encoded, Random &random) = 0;

    virtual std::string mutate(const std::string &text, const std::string &other, Random &random) = 0;

    // The result of C++ libprotobuf for a text: the encoded message, or the reason for refusing it.
    virtual OracleAnswer parse_with_cpp(const MessageType &type, const std::string &text, bool ignores_unknown) = 0;

    // The intended differences from Python.
    virtual const Exceptions &exceptions() = 0;

    // Compares the results for a text that we have parsed before Python has.
    virtual void judge_by_cpp(const Pending &) {}

    // Sends a message that we have printed to the oracle, and compares the answer.
    virtual void ask_about_printed(const Pending &) {}
    virtual void judge_printed(const Pending &, const OracleAnswer &) {}

    // MARK: For all formats

    const MessageType &find(const std::string &name) const;
    Parsed parse(const MessageType &type, const std::string &text, const ParseSettings &settings) const;
    Printed print(
        const MessageType &type, const std::string &encoded, const PrintSettings &settings, size_t capacity = 0) const;
    void test_text(
        const MessageType &type, const std::string &text, const ParseSettings &settings, const std::string &origin);

    // Parses a text of any depth that `printer` printed. Returns the failures, or nothing.
    std::string problem_of_reading(
        const std::string &printer, const MessageType &type, const std::string &text, ParseSettings settings,
        const std::string &expected) const;

    // Whether both accept the text and read the same message, or both refuse it, or the difference is intended. Counts
    // the result.
    bool is_explained(const Pending &pending, const OracleAnswer &peer, const Exceptions &exceptions);

    void count(const std::string &outcome);
    void disagree(
        const MessageType &type, const std::string &input, const std::string &problem, const std::string &origin);
    std::string current_origin() const { return std::to_string(tested_); }
    void remove_types(bool (*condition)(const MessageType &type));

    std::vector<Pending> pending_;

private:
    void run_round(Random &random);
    void test_limits(const MessageType &type, const std::string &text, Random &random);
    void test_parsed_case(const TextualCase &fixed, const std::string &origin);
    void test_printed_case(const TextualCase &fixed, const std::string &origin);
    void expect(
        const MessageType &type, const Printed &printed, const std::string &expected, const std::string &origin);
    void ask_oracle();
    void judge(const Pending &pending, const OracleAnswer &python);
    double elapsed() const;

    TextualFormat format_;
    std::vector<MessageType> types_;
    Oracle &oracle_;
    uint64_t seed_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::map<std::string, size_t> outcomes_;
    size_t tested_ = 0;
    size_t disagreements_ = 0;
};

// With non-ASCII bytes and percent signs as %0A.
std::string visible(const std::string &text);

std::string describe(const Parsed &parsed);
std::string describe(const OracleAnswer &answer);

// Prints the text that was being tested when the process crashed.
void print_current_text();

}  // namespace differential
