// The command line: reads the options, runs the tests, prints the results.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>

#include <google/protobuf/stubs/logging.h>

#include "check.h"
#include "crash.h"
#include "engine.h"
#include "fixed_cases.h"
#include "generator.h"
#include "json_run.h"
#include "mutator.h"
#include "peers.h"
#include "random.h"
#include "text_run.h"
#include "types.h"

namespace differential {

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    uint64_t seed = 1;
    size_t inputs = 20'000;
    double seconds = 0;  // 0: no limit
    std::string fixed_cases;
    std::string json_oracle;  // the script; empty: no JSON
    std::string text_oracle;  // the script; empty: no text format
    std::string replayed_input;
    std::string replayed_type;
};

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

Options parse_options(int count, char **arguments) {
    Options options;
    auto value = [&](int &index) -> std::string {
        if (index + 1 >= count) throw UsageError(std::string(arguments[index]) + " needs a value");
        return arguments[++index];
    };
    auto number = [&](int &index) {
        std::string text = value(index);
        size_t end = 0;
        double parsed = -1;
        try {
            parsed = std::stod(text, &end);
        } catch (const std::exception &) {
        }
        if (end != text.size() || !(parsed >= 0 && parsed < 1e15)) throw UsageError("not a number: " + text);
        return parsed;
    };
    for (int index = 1; index < count; index += 1) {
        std::string option = arguments[index];
        if (option == "--seed") options.seed = static_cast<uint64_t>(number(index));
        else if (option == "--inputs") options.inputs = static_cast<size_t>(number(index));
        else if (option == "--seconds") options.seconds = number(index);
        else if (option == "--fixed-cases") options.fixed_cases = value(index);
        else if (option == "--json-oracle") options.json_oracle = value(index);
        else if (option == "--text-oracle") options.text_oracle = value(index);
        else if (option == "--replay") {
            options.replayed_input = value(index);
            options.replayed_type = value(index);
        } else throw UsageError("unknown option " + option);
    }
    return options;
}

// The text after the report of a crash.
const MessageType *current_type = nullptr;
std::string_view current_input;

void print_replay(std::ostream &output, const MessageType &type, std::string_view input) {
    // Longer ones are fixed cases, which run first anyway.
    if (input.size() > 50'000) {
        output << "  an input of " << input.size() << " bytes\n";
        return;
    }
    output << "  replay: " << differential_command << " --replay '" << hex(input) << "' " << type.name << "\n";
}

Verdict checked(const MessageType &type, const std::string &input) {
    current_type = &type;
    current_input = input;
    Verdict verdict = check(type, input);
    current_type = nullptr;
    return verdict;
}

void print_current() {
    if (current_type == nullptr) return;
    std::cerr << "The run crashed at this input of a " << current_type->name << ":\n";
    print_replay(std::cerr, *current_type, current_input);
}

class Run {
public:
    Run(const Options &options, std::vector<MessageType> types) : options_(options), types_(std::move(types)) {}

    void run_fixed_cases() {
        for (const FixedCase &fixed : read_fixed_cases(options_.fixed_cases)) {
            Verdict verdict = test(find(fixed.type), fixed.input);
            std::string outcome = name_of(verdict.status);
            if (outcome == fixed.expected) continue;
            std::cout << options_.fixed_cases << ":" << fixed.line << ": " << outcome << " instead of "
                      << fixed.expected << "\n";
            disagreements_ += 1;
        }
    }

    void run_generated() {
        size_t fixed = tested_;
        for (uint64_t round = 0; tested_ - fixed < options_.inputs && disagreements_ < most_disagreements; round += 1) {
            // Each round has its own generator, so that an input depends only on the seed and its round.
            Random random(Random(options_.seed).next() + round);
            run_round(random);
            if (options_.seconds > 0 && elapsed() >= options_.seconds) break;
        }
        clear_progress();
    }

    int replay() {
        const MessageType &type = find(options_.replayed_type);
        std::string input = bytes_of_hex(options_.replayed_input);
        Verdict verdict = test(type, input);
        std::unique_ptr<google::protobuf::Message> message = parse_with_cpp(type, input);
        std::cout << "ours: " << name_of(verdict.status) << "\nC++:  "
                  << (message == nullptr ? "refused" : message->Utf8DebugString()) << "\n"
                  << (disagreements_ > 0 ? "" : "They agree: " + verdict.outcome + ".\n");
        return disagreements_ > 0 ? 1 : 0;
    }

    int report() {
        std::cout << "differential: seed " << options_.seed << ", " << tested_ << " inputs of " << types_.size()
                  << " types:";
        for (const auto &[outcome, count] : outcomes_) std::cout << " " << outcome << " " << count << ",";
        std::cout << " by libprotobuf-c too " << with_protobuf_c_ << "; disagreements " << disagreements_ << " ("
                  << static_cast<int>(elapsed()) << " s)\n";
        return disagreements_ > 0 ? 1 : 0;
    }

private:
    // Further ones give no more information.
    static constexpr size_t most_disagreements = 10;

    // A random type. Types with more fields are more frequent, because more can go wrong.
    const MessageType &pick_type(Random &random) const {
        while (true) {
            const MessageType &type = types_[random.below(types_.size())];
            if (random.below(20) <= static_cast<size_t>(type.descriptor()->field_count())) return type;
        }
    }

    // A message, its variants, and sometimes every truncation of it.
    void run_round(Random &random) {
        const MessageType &type = pick_type(random);
        std::string bytes = generate(type, random);
        std::string other = generate(type, random);
        test(type, bytes);
        for (int variant = 0; variant < 8; variant += 1) test(type, mutate(type.descriptor(), bytes, other, random));
        if (bytes.size() > 64 || !random.one_in(8)) return;
        for (size_t length = 0; length < bytes.size(); length += 1) test(type, bytes.substr(0, length));
    }

    static std::string generate(const MessageType &type, Random &random) {
        std::unique_ptr<google::protobuf::Message> message(type.prototype->New());
        fill(*message, random);
        return canonical(*message);
    }

    Verdict test(const MessageType &type, const std::string &input) {
        Verdict verdict = checked(type, input);
        tested_ += 1;
        if (verdict.compared_with_protobuf_c) with_protobuf_c_ += 1;
        if (verdict.disagreement.empty()) {
            outcomes_[verdict.outcome] += 1;
        } else {
            disagreements_ += 1;
            clear_progress();
            print_disagreement(type, input, verdict);
        }
        if (tested_ % 500 == 0 && isatty(STDERR_FILENO)) {
            std::cerr << "\r" << tested_ << " inputs, " << disagreements_ << " disagreements" << std::flush;
        }
        return verdict;
    }

    void print_disagreement(const MessageType &type, const std::string &input, const Verdict &verdict) {
        std::cout << "DISAGREEMENT about a " << type.name << " (seed " << options_.seed << ", input " << tested_
                  << "): " << verdict.disagreement << "\n";
        print_replay(std::cout, type, input);
        std::string smaller = shrink(type, input);
        if (smaller.size() == input.size()) return;
        std::cout << "  smaller: " << checked(type, smaller).disagreement << "\n";
        print_replay(std::cout, type, smaller);
    }

    // Removes pieces that the disagreement does not need, larger ones first.
    static std::string shrink(const MessageType &type, std::string input) {
        size_t checks_left = 5'000;
        for (size_t piece = input.size() / 2; piece > 0; piece /= 2) {
            for (size_t start = 0; start + piece <= input.size() && checks_left > 0;) {
                std::string smaller = input;
                smaller.erase(start, piece);
                checks_left -= 1;
                if (checked(type, smaller).disagreement.empty()) start += piece;
                else input = std::move(smaller);
            }
        }
        return input;
    }

    const MessageType &find(const std::string &name) const {
        for (const MessageType &type : types_) {
            if (type.name == name) return type;
        }
        throw std::runtime_error("there is no message type " + name);
    }

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

    void clear_progress() const {
        if (isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << std::flush;
    }

    const Options &options_;
    std::vector<MessageType> types_;
    Clock::time_point started_ = Clock::now();
    std::map<std::string, size_t> outcomes_;
    size_t tested_ = 0;
    size_t with_protobuf_c_ = 0;
    size_t disagreements_ = 0;
};

template <typename FormatRun>
int run_textual(const Options &options, const std::string &oracle_script, const std::filesystem::path &descriptors) {
    call_before_crash(print_current_text);
    std::vector<MessageType> types = load_types(descriptors);
    Oracle oracle(oracle_script, descriptors);
    FormatRun run(std::move(types), oracle, options.seed);
    if (!options.replayed_type.empty()) return run.replay(options.replayed_input, options.replayed_type);
    if (!options.fixed_cases.empty()) run.run_fixed_cases(options.fixed_cases);
    run.run_generated(options.inputs, options.seconds);
    return run.report();
}

int run(int count, char **arguments) {
    Options options = parse_options(count, arguments);
    google::protobuf::SetLogHandler(nullptr);  // it warns of bad UTF-8 in proto2
    auto descriptors = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "protos.binpb";
    if (!options.json_oracle.empty()) return run_textual<JSONRun>(options, options.json_oracle, descriptors);
    if (!options.text_oracle.empty()) return run_textual<TextRun>(options, options.text_oracle, descriptors);
    call_before_crash(print_current);
    Run run(options, load_types(descriptors));
    if (!options.replayed_type.empty()) return run.replay();
    if (!options.fixed_cases.empty()) run.run_fixed_cases();
    run.run_generated();
    return run.report();
}

}  // namespace

}  // namespace differential

int main(int count, char **arguments) {
    try {
        return differential::run(count, arguments);
    } catch (const differential::UsageError &error) {
        std::cerr << "differential: " << error.what() << ". See scripts/differential --help.\n";
        return 64;
    } catch (const std::exception &error) {
        std::cerr << "differential: " << error.what() << "\n";
        return 65;
    }
}
