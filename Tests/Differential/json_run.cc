#include "json_run.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <stdexcept>

#include "check.h"
#include "engine.h"
#include "json_cases.h"
#include "json_exceptions.h"
#include "json_mutator.h"
#include "json_peers.h"

namespace differential {

namespace {

// More say no more.
constexpr size_t most_disagreements = 10;

// So many that starting a batch costs little.
constexpr size_t batch_size = 500;

// Texts of messages of a depth of 100 are deeper: arrays and google.protobuf.Any add levels.
constexpr uint32_t deepest_text = 1'000;

bool reaches_group(const google::protobuf::Descriptor *type, std::set<const google::protobuf::Descriptor *> &seen) {
    if (!seen.insert(type).second) return false;
    for (int index = 0; index < type->field_count(); index++) {
        const google::protobuf::FieldDescriptor *field = type->field(index);
        if (field->type() == google::protobuf::FieldDescriptor::TYPE_GROUP) return true;
        if (field->message_type() != nullptr && reaches_group(field->message_type(), seen)) return true;
    }
    return false;
}

// C++ libprotobuf 3.21 writes groups without their end where it reads JSON, also those in a google.protobuf.Any.
bool may_have_groups(const MessageType &type, const std::string &text) {
    std::set<const google::protobuf::Descriptor *> seen;
    return text.find("test.proto2.Groups") != std::string::npos || reaches_group(type.descriptor(), seen);
}

// C++ libprotobuf has no option for its limit.
constexpr size_t deepest_text_of_cpp = 90;

const MessageType *current_type = nullptr;
const std::string *current_text = nullptr;

JSONParsed parse(const MessageType &type, const std::string &text, const JSONParseSettings &settings) {
    current_type = &type;
    current_text = &text;
    JSONParsed parsed = parse_json(type.table, text, settings);
    current_type = nullptr;
    return parsed;
}

JSONPrinted print(
    const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings, size_t capacity) {
    current_type = &type;
    current_text = &encoded;
    JSONPrinted printed = print_json(type.table, encoded, settings, capacity);
    current_type = nullptr;
    return printed;
}

size_t depth_of(const std::string &text) {
    size_t depth = 0;
    size_t deepest = 0;
    bool in_string = false;
    for (size_t index = 0; index < text.size(); index += 1) {
        char byte = text[index];
        if (byte == '"') in_string = !in_string;
        if (in_string && byte == '\\') index += 1;
        if (in_string) continue;
        if (byte == '{' || byte == '[') deepest = std::max(deepest, depth += 1);
        if ((byte == '}' || byte == ']') && depth > 0) depth -= 1;
    }
    return deepest;
}

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

std::string quoted_for_shell(const std::string &text) {
    std::string result = "'";
    for (char letter : visible(text)) {
        if (letter == '\'') result += "'\\''";
        else result += letter;
    }
    return result + "'";
}

std::string describe(const JSONParsed &parsed) {
    if (parsed.accepted()) return "accepted " + hex(parsed.encoded);
    return std::string(name_of(parsed.status)) + " at byte " + std::to_string(parsed.offset) + " in field "
           + std::to_string(parsed.field_number);
}

char print_kind(const JSONPrintSettings &settings) {
    return static_cast<char>('0' + settings.proto_names + 2 * settings.enums_as_numbers + 4 * settings.absent_fields);
}

// Whether two fields have the same name in JSON, which proto2 allows: then JSON does not say which one it is.
bool has_clashing_names(const MessageType &type) {
    std::set<std::string> names;
    const auto *descriptor = type.descriptor();
    for (int index = 0; index < descriptor->field_count(); index += 1) {
        if (!names.insert(descriptor->field(index)->json_name()).second) return true;
    }
    return false;
}

}  // namespace

void print_current_json() {
    if (current_type == nullptr) return;
    std::cerr << "A sanitizer stopped the run at this text, or message, of a " << current_type->name << ":\n";
    if (current_text->size() > 50'000) {
        std::cerr << "  of " << current_text->size() << " bytes\n";
        return;
    }
    std::cerr << "  scripts/differential --json --replay " << quoted_for_shell(*current_text) << " "
              << current_type->name << "\n";
}

JSONRun::JSONRun(std::vector<MessageType> types, JSONOracle &oracle, uint64_t seed)
    : types_(std::move(types)), oracle_(oracle), seed_(seed) {
    set_json_types(types_);
    types_.erase(std::remove_if(types_.begin(), types_.end(), has_clashing_names), types_.end());
}

const MessageType &JSONRun::find(const std::string &name) const {
    for (const MessageType &type : types_) {
        if (type.name == name) return type;
    }
    throw std::runtime_error("there is no message type " + name);
}

// MARK: Generated inputs

void JSONRun::run_generated(size_t inputs, double seconds) {
    size_t fixed = tested_;
    for (uint64_t round = 0; tested_ - fixed < inputs && disagreements_ < most_disagreements; round += 1) {
        // Each round has a generator of its own, so that an input depends on the seed and its round only.
        Random random(Random(seed_).next() + round);
        run_round(random);
        if (pending_.size() >= batch_size) ask_oracle();
        if (seconds > 0 && elapsed() >= seconds) break;
    }
    ask_oracle();
}

// A message in both directions, and variants of its text.
void JSONRun::run_round(Random &random) {
    const MessageType &type = types_[random.below(types_.size())];
    std::string encoded = generate_for_json(types_, type, random);
    tested_ += 1;
    std::string problem = test_message(type, encoded, random);
    if (!problem.empty()) return disagree(type, "", problem + "\n  message: " + hex(encoded), std::to_string(tested_));
    std::string other = generate_for_json(types_, type, random);
    JSONPrintSettings settings;
    settings.proto_names = random.one_in(4);
    settings.absent_fields = random.one_in(4);
    settings.enums_as_numbers = random.one_in(4);
    settings.int64_as_numbers = random.one_in(4);
    JSONPrinted text = print(type, encoded, settings, 0);
    JSONPrinted other_text = print(type, other, settings, 0);
    if (!text.accepted() || !other_text.accepted()) return;
    test_limits(type, text.text, random);
    for (int variant = 0; variant < 8; variant += 1) {
        tested_ += 1;
        std::string mutated = mutate_json(text.text, other_text.text, random);
        if (variant == 0) test_limits(type, mutated, random);
        test_text(type, mutated, random.one_in(4), std::to_string(tested_));
    }
    if (text.text.size() > 80 || !random.one_in(8)) return;
    for (size_t length = 0; length < text.text.size(); length += 1) {
        tested_ += 1;
        test_text(type, text.text.substr(0, length), false, std::to_string(tested_));
    }
}

// Returns what is wrong, or nothing.
std::string JSONRun::test_message(const MessageType &type, const std::string &encoded, Random &random) {
    std::string problem = test_variant(type, encoded, {}, random);
    if (!problem.empty()) return problem;
    JSONPrintSettings settings;
    settings.proto_names = random.one_in(2);
    settings.enums_as_numbers = random.one_in(2);
    settings.absent_fields = random.one_in(2);
    settings.int64_as_numbers = random.one_in(2);
    return test_variant(type, encoded, settings, random);
}

std::string JSONRun::test_variant(
    const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings, Random &random) {
    JSONPrinted printed = print(type, encoded, settings, random.below(200));
    // Python always has quotes around 64 bits.
    if (!settings.int64_as_numbers) {
        Pending pending{&type, {print_kind(settings), type.name, printed.text, encoded}, {}, printed, ""};
        pending.origin = std::to_string(tested_);
        pending_.push_back(std::move(pending));
    }
    if (!printed.accepted()) return "";
    std::string expected = canonical_content(type, encoded).value();
    JSONParseSettings deep;
    deep.maximum_depth = deepest_text;
    JSONParsed parsed = parse(type, printed.text, deep);
    std::string text = "\n  text: " + visible(printed.text);
    if (!parsed.broken_law.empty()) return "this does not hold: " + parsed.broken_law + text;
    if (!parsed.accepted()) return "we refuse what we print: " + describe(parsed) + text;
    if (canonical_content(type, parsed.encoded) != expected) return "we read another message from what we print" + text;
    if (depth_of(printed.text) >= deepest_text_of_cpp || may_have_groups(type, printed.text)) return "";
    std::string reason;
    std::optional<std::string> by_cpp = parse_json_with_cpp(type, printed.text, reason);
    const char *exception = by_cpp ? nullptr : explain_cpp_refusal(printed.text, reason);
    if (exception != nullptr) count(exception);
    else if (!by_cpp) return "C++ refuses what we print: " + reason + text;
    else if (canonical_content(type, *by_cpp) != expected) {
        return "C++ reads another message from what we print: " + hex(*by_cpp) + text;
    }
    return test_cpp_text(type, encoded, settings);
}

std::string JSONRun::test_cpp_text(
    const MessageType &type, const std::string &encoded, const JSONPrintSettings &settings) {
    std::optional<std::string> text = print_json_with_cpp(type, encoded, settings);
    if (!text) return "C++ cannot print what we print";
    JSONParseSettings deep;
    deep.maximum_depth = deepest_text;
    JSONParsed parsed = parse(type, *text, deep);
    std::string shown = "\n  text: " + visible(*text);
    if (!parsed.accepted()) return "we refuse what C++ prints: " + describe(parsed) + shown;
    if (canonical_content(type, parsed.encoded) != canonical_content(type, encoded)) {
        return "we read another message from what C++ prints: " + hex(parsed.encoded) + shown;
    }
    return "";
}

// With any limits parsing ends with the same outcome, or at a limit.
void JSONRun::test_limits(const MessageType &type, const std::string &text, Random &random) {
    JSONParseSettings settings;
    JSONParsed ample = parse(type, text, settings);
    for (int times = 0; times < 2; times += 1) {
        settings.budget = static_cast<uint32_t>(random.below(random.one_in(2) ? 8 : 2 + text.size() / 16));
        settings.maximum_depth = static_cast<uint32_t>(random.one_in(2) ? random.below(6) : 100);
        JSONParsed parsed = parse(type, text, settings);
        bool is_same = parsed.status == ample.status && (!parsed.accepted() || parsed.encoded == ample.encoded);
        std::string limits = "with a budget of " + std::to_string(settings.budget) + " units and a depth of "
                             + std::to_string(settings.maximum_depth) + ": ";
        if (!parsed.broken_law.empty()) disagree(type, text, limits + parsed.broken_law, std::to_string(tested_));
        else if (parsed.status == LIFELINE_OUT_OF_MEMORY) count("over a small budget");
        else if (parsed.status == LIFELINE_TOO_DEEP) count("over a small depth");
        else if (!is_same) disagree(type, text, limits + describe(parsed), std::to_string(tested_));
    }
}

// MARK: Texts

void JSONRun::test_text(
    const MessageType &type, const std::string &text, bool ignores_unknown, const std::string &origin) {
    JSONParseSettings settings;
    settings.ignores_unknown = ignores_unknown;
    JSONParsed parsed = parse(type, text, settings);
    if (!parsed.broken_law.empty()) return disagree(type, text, "this does not hold: " + parsed.broken_law, origin);
    pending_.push_back({&type, {ignores_unknown ? 'I' : 'P', type.name, text, ""}, parsed, {}, origin});
}

void JSONRun::ask_oracle() {
    std::vector<OracleRequest> requests;
    for (const Pending &pending : pending_) requests.push_back(pending.request);
    std::vector<OracleAnswer> answers = oracle_.ask(requests);
    for (size_t index = 0; index < pending_.size(); index += 1) judge(pending_[index], answers[index]);
    pending_.clear();
    if (isatty(STDERR_FILENO)) {
        std::cerr << "\r" << tested_ << " inputs, " << disagreements_ << " disagreements" << std::flush;
    }
}

void JSONRun::judge(const Pending &pending, const OracleAnswer &python) {
    const std::string &text = pending.request.text;
    if (pending.request.kind != 'P' && pending.request.kind != 'I') {
        bool both_refuse = !pending.printed.accepted() && !python.accepted && python.result[0] == '!';
        if (both_refuse) return count("not printable");
        if (pending.printed.accepted() && python.accepted) return count("printed");
        if (pending.printed.accepted() && explain_printing(text, python)) {
            return count("capitals beyond ASCII in a FieldMask");
        }
        disagree(
            *pending.type, "",
            "Python prints it otherwise (options " + std::string(1, pending.request.kind) + ")\n  message: "
                + hex(pending.request.encoded) + "\n  ours: " + name_of(pending.printed.status) + " " + visible(text)
                + "\n  Python: " + visible(python.result),
            pending.origin);
        return;
    }
    const JSONParsed &engine = pending.engine;
    JSONComparison comparison{text, engine, python, pending.request.kind == 'I'};
    if (!engine.accepted() && !python.accepted) return count("refused");
    const JSONException *exception = nullptr;
    if (engine.accepted() && python.accepted) {
        if (canonical_content(*pending.type, engine.encoded) == canonical_content(*pending.type, python.result)) {
            return count("accepted");
        }
        exception = explain_content(comparison);
    } else {
        exception = engine.accepted() ? explain_acceptance(comparison) : explain_refusal(comparison);
    }
    if (exception != nullptr) return count(exception->name);
    std::string reason;
    std::optional<std::string> cpp = parse_json_with_cpp(*pending.type, text, reason);
    std::string described = python.accepted ? "accepted " + hex(python.result) : visible(python.result);
    disagree(
        *pending.type, text,
        "Python reads it otherwise" + std::string(pending.request.kind == 'I' ? ", ignoring unknown fields" : "")
            + "\n  ours:   " + describe(engine) + "\n  Python: " + described
            + "\n  C++:    " + (cpp ? "accepted " + hex(*cpp) : reason),
        pending.origin);
}

void JSONRun::count(const std::string &outcome) { outcomes_[outcome] += 1; }

void JSONRun::disagree(
    const MessageType &type, const std::string &input, const std::string &problem, const std::string &origin) {
    disagreements_ += 1;
    std::cout << "DISAGREEMENT about a " << type.name << " (seed " << seed_ << ", " << origin << "): " << problem
              << "\n";
    if (!input.empty()) {
        std::cout << "  scripts/differential --json --replay " << quoted_for_shell(input) << " " << type.name << "\n";
    }
}

// MARK: Fixed cases

void JSONRun::run_fixed_cases(const std::string &path) {
    for (const JSONCase &fixed : read_json_cases(path)) {
        std::string origin = path + ":" + std::to_string(fixed.line);
        tested_ += 1;
        if (fixed.kind == JSONCase::Kind::parsed) test_parsed_case(fixed, origin);
        else test_printed_case(fixed, origin);
    }
    ask_oracle();
}

void JSONRun::test_parsed_case(const JSONCase &fixed, const std::string &origin) {
    const MessageType &type = find(fixed.type);
    JSONParseSettings settings;
    settings.ignores_unknown = fixed.ignores_unknown;
    JSONParsed parsed = parse(type, fixed.text, settings);
    if (name_of(parsed.status) != fixed.outcome) {
        disagree(type, fixed.text, describe(parsed) + " instead of " + fixed.outcome, origin);
    }
    for (const auto &[settings, expected] : fixed.printed) {
        if (!parsed.accepted()) break;
        expect(type, print(type, parsed.encoded, settings, 0), expected, origin);
    }
    test_text(type, fixed.text, fixed.ignores_unknown, origin);
}

void JSONRun::test_printed_case(const JSONCase &fixed, const std::string &origin) {
    const MessageType &type = find(fixed.type);
    JSONPrinted printed = print(type, fixed.text, {}, 0);
    expect(type, printed, fixed.outcome, origin);
    pending_.push_back({&type, {'0', type.name, printed.text, fixed.text}, {}, printed, origin});
}

void JSONRun::expect(
    const MessageType &type, const JSONPrinted &printed, const std::string &expected, const std::string &origin) {
    std::string text = printed.accepted() ? printed.text : name_of(printed.status);
    if (text == expected) return;
    disagree(type, "", "printed as " + visible(text) + " instead of " + visible(expected), origin);
}

int JSONRun::replay(const std::string &text, const std::string &name) {
    const MessageType &type = find(name);
    std::string bytes = read_json_text(text);
    for (bool ignores_unknown : {false, true}) {
        JSONParseSettings settings;
        settings.ignores_unknown = ignores_unknown;
        JSONParsed parsed = parse(type, bytes, settings);
        std::cout << (ignores_unknown ? "ignoring unknown fields: " : "ours: ") << describe(parsed) << "\n";
        if (parsed.accepted()) std::cout << "  " << print(type, parsed.encoded, {}, 0).text << "\n";
        test_text(type, bytes, ignores_unknown, "replay");
    }
    ask_oracle();
    return report();
}

double JSONRun::elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

int JSONRun::report() const {
    if (isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << std::flush;
    std::cout << "differential: JSON: seed " << seed_ << ", " << tested_ << " inputs of " << types_.size() << " types:";
    for (const auto &[outcome, count] : outcomes_) std::cout << " " << outcome << " " << count << ",";
    std::cout << " disagreements " << disagreements_ << " (" << static_cast<int>(elapsed()) << " s)\n";
    return disagreements_ > 0 ? 1 : 0;
}

}  // namespace differential
