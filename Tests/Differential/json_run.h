// Compares the engine's JSON with C++ libprotobuf and Python's protobuf.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "json_cases.h"
#include "json_engine.h"
#include "json_oracle.h"
#include "random.h"
#include "types.h"

namespace differential {

class JSONRun {
public:
    JSONRun(std::vector<MessageType> types, JSONOracle &oracle, uint64_t seed);

    // Reads the cases of a file that is written as json.txt explains.
    void run_fixed_cases(const std::string &path);

    // Tests at least so many generated inputs, or until the seconds have passed, unless those are 0.
    void run_generated(size_t inputs, double seconds);

    // Prints what everyone makes of the text. Returns the process's status.
    int replay(const std::string &text, const std::string &type);

    // Prints one line. Returns the process's status.
    int report() const;

private:
    // A text that waits for the oracle, or a message whose text does.
    struct Pending {
        const MessageType *type;
        OracleRequest request;
        JSONParsed engine;    // of a text
        JSONPrinted printed;  // of a message
        std::string origin;   // the place of a fixed case, or the number of the input
    };

    const MessageType &find(const std::string &name) const;
    void run_round(Random &random);
    std::string test_message(const MessageType &type, const std::string &encoded, Random &random);
    std::string test_variant(
        const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings, Random &random);
    std::string test_cpp_text(const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings);
    void test_limits(const MessageType &type, const std::string &text, Random &random);
    void test_text(const MessageType &type, const std::string &text, bool ignores_unknown, const std::string &origin);
    void test_parsed_case(const JSONCase &fixed, const std::string &origin);
    void test_printed_case(const JSONCase &fixed, const std::string &origin);
    void expect(
        const MessageType &type, const JSONPrinted &printed, const std::string &expected, const std::string &origin);
    void ask_oracle();
    void judge(const Pending &pending, const OracleAnswer &answer);
    void count(const std::string &outcome);
    void disagree(
        const MessageType &type, const std::string &input, const std::string &problem, const std::string &origin);
    double elapsed() const;

    std::vector<MessageType> types_;
    JSONOracle &oracle_;
    uint64_t seed_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::vector<Pending> pending_;
    std::map<std::string, size_t> outcomes_;
    size_t tested_ = 0;
    size_t disagreements_ = 0;
};

// Prints the text that was tested when a sanitizer ended the process.
void print_current_json();

}  // namespace differential
