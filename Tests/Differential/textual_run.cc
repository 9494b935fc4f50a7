#include "textual_run.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "check.h"
#include "engine.h"
#include "textual_messages.h"

namespace differential {

namespace {

// Further ones give no more information.
constexpr size_t most_disagreements = 10;

// Large enough that starting a batch costs little.
constexpr size_t batch_size = 500;

const MessageType *current_type = nullptr;
const std::string *current_text = nullptr;
TextualFormat current_format;

std::string quoted_for_shell(const std::string &text) {
    std::string result = "'";
    for (char letter : visible(text)) {
        if (letter == '\'') result += "'\\''";
        else result += letter;
    }
    return result + "'";
}

std::string replay_command(TextualFormat format, const MessageType &type, const std::string &text) {
    return std::string(differential_command) + " " + (format == TextualFormat::json ? "--json" : "--text") + " --replay "
           + quoted_for_shell(text) + " " + type.name;
}

}  // namespace

std::string visible(const std::string &text) {
    static const char digits[] = "0123456789ABCDEF";
    std::string result;
    for (unsigned char byte : text) {
        if (byte >= 0x20 && byte != '%' && byte < 0x7F) {
            result += static_cast<char>(byte);
        } else {
            result += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return result;
}

std::string describe(const OracleAnswer &answer) {
    return answer.accepted ? "accepted " + hex(answer.result) : visible(answer.result);
}

std::string describe(const Parsed &parsed) {
    if (parsed.accepted()) return "accepted " + hex(parsed.encoded);
    return std::string(name_of(parsed.status)) + " at byte " + std::to_string(parsed.offset) + " in field "
           + std::to_string(parsed.field_number);
}

void print_current_text() {
    if (current_type == nullptr) return;
    std::cerr << "The run crashed at this text, or message, of a " << current_type->name << ":\n";
    if (current_text->size() > 50'000) {
        std::cerr << "  of " << current_text->size() << " bytes\n";
        return;
    }
    std::cerr << "  " << replay_command(current_format, *current_type, *current_text) << "\n";
}

TextualRun::TextualRun(TextualFormat format, std::vector<MessageType> types, Oracle &oracle, uint64_t seed)
    : format_(format), types_(std::move(types)), oracle_(oracle), seed_(seed) {
    set_known_types(types_);
}

void TextualRun::remove_types(bool (*condition)(const MessageType &type)) {
    types_.erase(std::remove_if(types_.begin(), types_.end(), condition), types_.end());
}

Parsed TextualRun::parse(const MessageType &type, const std::string &text, const ParseSettings &settings) const {
    current_format = format_;
    current_type = &type;
    current_text = &text;
    Parsed parsed = parse_text(format_, type.table, text, settings);
    current_type = nullptr;
    return parsed;
}

Printed TextualRun::print(
    const MessageType &type, const std::string &encoded, const PrintSettings &settings, size_t capacity) const {
    current_format = format_;
    current_type = &type;
    current_text = &encoded;
    Printed printed = print_text(format_, type.table, encoded, settings, capacity);
    current_type = nullptr;
    return printed;
}

const MessageType &TextualRun::find(const std::string &name) const {
    for (const MessageType &type : types_) {
        if (type.name == name) return type;
    }
    throw std::runtime_error("there is no message type " + name);
}

// MARK: Generated inputs

void TextualRun::run_generated(size_t inputs, double seconds) {
    size_t fixed = tested_;
    for (uint64_t round = 0; tested_ - fixed < inputs && disagreements_ < most_disagreements; round += 1) {
        // Each round has its own generator, so that an input depends only on the seed and its round.
        Random random(Random(seed_).next() + round);
        run_round(random);
        if (pending_.size() >= batch_size) ask_oracle();
        if (seconds > 0 && elapsed() >= seconds) break;
    }
    ask_oracle();
}

// A message in both directions, and variants of its text.
void TextualRun::run_round(Random &random) {
    const MessageType &type = types_[random.below(types_.size())];
    std::string encoded = generate_for(format_, types_, type, random);
    tested_ += 1;
    std::string problem = test_message(type, encoded, random);
    if (!problem.empty()) return disagree(type, "", problem + "\n  message: " + hex(encoded), current_origin());
    std::string other = generate_for(format_, types_, type, random);
    PrintSettings settings = some_settings(random);
    Printed text = print(type, encoded, settings);
    Printed other_text = print(type, other, settings);
    if (!text.accepted() || !other_text.accepted()) return;
    test_limits(type, text.text, random);
    for (int variant = 0; variant < 8; variant += 1) {
        tested_ += 1;
        std::string mutated = mutate(text.text, other_text.text, random);
        if (variant == 0) test_limits(type, mutated, random);
        ParseSettings parse_settings;
        parse_settings.ignores_unknown = random.one_in(4);
        test_text(type, mutated, parse_settings, current_origin());
    }
    if (text.text.size() > 80 || !random.one_in(8)) return;
    for (size_t length = 0; length < text.text.size(); length += 1) {
        tested_ += 1;
        test_text(type, text.text.substr(0, length), {}, current_origin());
    }
}

std::string TextualRun::problem_of_reading(
    const std::string &printer, const MessageType &type, const std::string &text, ParseSettings settings,
    const std::string &expected) const {
    settings.maximum_depth = deepest_text;
    Parsed parsed = parse(type, text, settings);
    std::string shown = "\n  text: " + visible(text);
    if (!parsed.broken_law.empty()) return "this does not hold: " + parsed.broken_law + shown;
    if (!parsed.accepted()) return "we refuse what " + printer + " print: " + describe(parsed) + shown;
    if (known_content(type, parsed.encoded) == expected) return "";
    return "we read another message from what " + printer + " print: " + hex(parsed.encoded) + shown;
}

// With any limits, parsing ends with the same outcome, or at a limit.
void TextualRun::test_limits(const MessageType &type, const std::string &text, Random &random) {
    ParseSettings settings;
    Parsed ample = parse(type, text, settings);
    for (int times = 0; times < 2; times += 1) {
        settings.budget = static_cast<uint32_t>(random.below(random.one_in(2) ? 8 : 2 + text.size() / 16));
        settings.maximum_depth = static_cast<uint32_t>(random.one_in(2) ? random.below(6) : 100);
        Parsed parsed = parse(type, text, settings);
        bool is_same = parsed.status == ample.status && (!parsed.accepted() || parsed.encoded == ample.encoded);
        std::string limits = "with a budget of " + std::to_string(settings.budget) + " units and a depth of "
                             + std::to_string(settings.maximum_depth) + ": ";
        if (!parsed.broken_law.empty()) disagree(type, text, limits + parsed.broken_law, current_origin());
        else if (parsed.status == LIFELINE_OUT_OF_MEMORY) count("over a small budget");
        else if (parsed.status == LIFELINE_TOO_DEEP) count("over a small depth");
        else if (!is_same) disagree(type, text, limits + describe(parsed), current_origin());
    }
}

// MARK: Texts

void TextualRun::test_text(
    const MessageType &type, const std::string &text, const ParseSettings &settings, const std::string &origin) {
    Parsed parsed = parse(type, text, settings);
    if (!parsed.broken_law.empty()) return disagree(type, text, "this does not hold: " + parsed.broken_law, origin);
    pending_.push_back({&type, {settings.ignores_unknown ? 'I' : 'P', type.name, text, ""}, parsed, {}, origin});
    judge_by_cpp(pending_.back());
}

void TextualRun::ask_oracle() {
    std::vector<OracleRequest> requests;
    for (const Pending &pending : pending_) requests.push_back(pending.request);
    std::vector<OracleAnswer> answers = oracle_.ask(requests);
    for (size_t index = 0; index < pending_.size(); index += 1) judge(pending_[index], answers[index]);
    pending_.clear();
    if (isatty(STDERR_FILENO)) {
        std::cerr << "\r" << tested_ << " inputs, " << disagreements_ << " disagreements" << std::flush;
    }
}

bool TextualRun::is_explained(const Pending &pending, const OracleAnswer &peer, const Exceptions &exceptions) {
    const Parsed &engine = pending.engine;
    if (!engine.accepted() && !peer.accepted) {
        count("refused");
        return true;
    }
    bool is_same = engine.accepted() && peer.accepted
                   && canonical_content(*pending.type, engine.encoded) == canonical_content(*pending.type, peer.result);
    Comparison comparison{pending.request.text, engine, peer, pending.request.kind == 'I'};
    const Exception *exception = is_same ? nullptr : explain(exceptions, comparison);
    if (is_same) count("accepted");
    if (exception != nullptr) count(exception->name);
    return is_same || exception != nullptr;
}

void TextualRun::judge(const Pending &pending, const OracleAnswer &python) {
    bool ignores_unknown = pending.request.kind == 'I';
    if (pending.request.kind != 'P' && !ignores_unknown) return judge_printed(pending, python);
    if (is_explained(pending, python, exceptions())) return;
    OracleAnswer cpp = parse_with_cpp(*pending.type, pending.request.text, ignores_unknown);
    disagree(
        *pending.type, pending.request.text,
        "Python reads it otherwise" + std::string(ignores_unknown ? ", ignoring unknown fields" : "")
            + "\n  ours:   " + describe(pending.engine) + "\n  Python: " + describe(python) + "\n  C++:    "
            + describe(cpp),
        pending.origin);
}

void TextualRun::count(const std::string &outcome) { outcomes_[outcome] += 1; }

void TextualRun::disagree(
    const MessageType &type, const std::string &input, const std::string &problem, const std::string &origin) {
    disagreements_ += 1;
    std::cout << "DISAGREEMENT about a " << type.name << " (seed " << seed_ << ", " << origin << "): " << problem
              << "\n";
    if (!input.empty()) std::cout << "  " << replay_command(format_, type, input) << "\n";
}

// MARK: Fixed cases

void TextualRun::run_fixed_cases(const std::string &path) {
    for (const TextualCase &fixed : read_textual_cases(path)) {
        std::string origin = path + ":" + std::to_string(fixed.line);
        tested_ += 1;
        if (fixed.kind == TextualCase::Kind::parsed) test_parsed_case(fixed, origin);
        else test_printed_case(fixed, origin);
    }
    ask_oracle();
}

void TextualRun::test_parsed_case(const TextualCase &fixed, const std::string &origin) {
    const MessageType &type = find(fixed.type);
    ParseSettings settings;
    settings.ignores_unknown = fixed.ignores_unknown;
    Parsed parsed = parse(type, fixed.text, settings);
    if (name_of(parsed.status) != fixed.outcome) {
        disagree(type, fixed.text, describe(parsed) + " instead of " + fixed.outcome, origin);
    }
    for (const auto &[settings, expected] : fixed.printed) {
        if (!parsed.accepted()) break;
        expect(type, print(type, parsed.encoded, settings), expected, origin);
    }
    test_text(type, fixed.text, settings, origin);
}

void TextualRun::test_printed_case(const TextualCase &fixed, const std::string &origin) {
    const MessageType &type = find(fixed.type);
    Printed printed = print(type, fixed.text, {});
    expect(type, printed, fixed.outcome, origin);
    ask_about_printed({&type, {'0', type.name, printed.text, fixed.text}, {}, printed, origin});
}

void TextualRun::expect(
    const MessageType &type, const Printed &printed, const std::string &expected, const std::string &origin) {
    std::string text = printed.accepted() ? printed.text : name_of(printed.status);
    if (text == expected) return;
    disagree(type, "", "printed as " + visible(text) + " instead of " + visible(expected), origin);
}

int TextualRun::replay(const std::string &text, const std::string &name) {
    const MessageType &type = find(name);
    std::string bytes = read_escaped_text(text);
    for (bool ignores_unknown : {false, true}) {
        ParseSettings settings;
        settings.ignores_unknown = ignores_unknown;
        Parsed parsed = parse(type, bytes, settings);
        std::cout << (ignores_unknown ? "ignoring unknown fields: " : "ours: ") << describe(parsed) << "\n";
        if (parsed.accepted()) std::cout << "  " << visible(print(type, parsed.encoded, {}).text) << "\n";
        test_text(type, bytes, settings, "replay");
    }
    ask_oracle();
    return report();
}

double TextualRun::elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

int TextualRun::report() const {
    if (isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << std::flush;
    std::cout << "differential: " << (format_ == TextualFormat::json ? "JSON" : "text format") << ": seed " << seed_
              << ", " << tested_ << " inputs of " << types_.size() << " types:";
    for (const auto &[outcome, count] : outcomes_) std::cout << " " << outcome << " " << count << ",";
    std::cout << " disagreements " << disagreements_ << " (" << static_cast<int>(elapsed()) << " s)\n";
    return disagreements_ > 0 ? 1 : 0;
}

}  // namespace differential
