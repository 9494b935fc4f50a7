#include "check.h"

#include <google/protobuf/message.h>

#include "engine.h"
#include "exceptions.h"
#include "peers.h"
#include "wire.h"

namespace differential {

using google::protobuf::Message;

namespace {

std::string describe(const EngineResult &result) {
    if (result.accepted()) return "accepted " + hex(result.encoded);
    return std::string(name_of(result.status)) + " at byte " + std::to_string(result.offset) + " in field "
           + std::to_string(result.field_number);
}

std::string describe(const Message *message) {
    return message == nullptr ? "refused" : "accepted " + hex(canonical(*message));
}

// Both of the engine's paths, with different bytes behind the input.
EngineResult run_both_paths(
    const MessageType &type, std::string_view input, bool accept_malformed_text, Verdict &verdict) {
    EngineResult result = run_engine(type.table, input, DecodePath::tail_calls, 1, accept_malformed_text);
    EngineResult plain = run_engine(type.table, input, DecodePath::plain, 2, accept_malformed_text);
    if (!(result == plain)) {
        verdict.disagreement = "our two paths differ\n  with tail calls: " + describe(result) + "\n  without:         "
                               + describe(plain);
    }
    if (!result.broken_law.empty()) verdict.disagreement = "this does not hold: " + result.broken_law;
    return result;
}

// Without the check of UTF-8, which C++ always makes, only the paths are compared with each other.
void check_without_utf8(const MessageType &type, std::string_view input, Verdict &verdict) {
    EngineResult result = run_both_paths(type, input, true, verdict);
    if (result.status == LIFELINE_INVALID_UTF8) verdict.disagreement = "malformed text is refused where it is allowed";
}

// Whether the input has only fields in C++'s order, with nothing behind them.
bool has_only_known_fields(const MessageType &type, std::string_view canonical_bytes) {
    auto wire = read_wire(type.descriptor(), canonical_bytes);
    if (!wire) return false;
    const WireFacts &facts = wire->facts;
    return !facts.unknown && !facts.other_wire_type && !facts.unknown_number_of_closed_enum
           && !facts.unknown_number_of_open_enum_in_proto2;
}

std::string compare_content(const MessageType &type, const EngineResult &engine, const Message &expected) {
    std::unique_ptr<Message> reparsed = parse_with_cpp(type, engine.encoded);
    if (reparsed == nullptr) return "C++ refuses what we encode";
    std::string expected_bytes = canonical(expected);
    if (canonical(*reparsed) != expected_bytes) return "C++ reads another message from what we encode";
    if (has_only_known_fields(type, expected_bytes) && engine.encoded != expected_bytes) {
        return "our encoding is not C++'s deterministic serialisation";
    }
    if (engine.missing_required == expected.IsInitialized()) {
        return engine.missing_required ? "only we miss a required field" : "only C++ misses a required field";
    }
    return "";
}

// The message is needed because libprotobuf-c requires `required` fields.
void compare_with_protobuf_c(
    const MessageType &type, std::string_view input, const WireFacts &facts, const Message &expected,
    Verdict &verdict) {
    if (!protobuf_c_agrees(facts) || !expected.IsInitialized()) return;
    verdict.compared_with_protobuf_c = true;
    std::optional<std::string> packed = repack_with_protobuf_c(type, input);
    if (!packed) {
        verdict.disagreement = "libprotobuf-c refuses it";
        return;
    }
    std::unique_ptr<Message> reparsed = parse_with_cpp(type, *packed);
    if (reparsed == nullptr || canonical(*reparsed) != canonical(expected)) {
        verdict.disagreement = "libprotobuf-c packs another message: " + hex(*packed);
    }
}

// If one side refuses an input because of the form of its varints, both read the shortest form alike.
void check_shortest_form(
    const MessageType &type, const std::vector<WireField> &fields, const Message *cpp_message, Verdict &verdict) {
    std::string shortest = write_wire(fields);
    Verdict rewritten = check(type, shortest);
    if (!rewritten.disagreement.empty()) {
        verdict.disagreement = "in shortest form, " + hex(shortest) + ": " + rewritten.disagreement;
        return;
    }
    std::unique_ptr<Message> reparsed = parse_with_cpp(type, shortest);
    if (cpp_message == nullptr || (reparsed != nullptr && canonical(*reparsed) == canonical(*cpp_message))) return;
    verdict.disagreement = "C++ reads another message from the shortest form, " + hex(shortest);
}

void compare(const MessageType &type, std::string_view input, const EngineResult &engine, Verdict &verdict) {
    std::unique_ptr<Message> message = parse_with_cpp(type, input);
    bool cpp_accepts = message != nullptr;
    if (!engine.accepted() && !cpp_accepts) {
        verdict.outcome = "refused";
        return;
    }
    auto wire = read_wire(type.descriptor(), input);
    Comparison comparison{type, engine, cpp_accepts, wire ? wire->facts : WireFacts{}};
    if (engine.accepted() != cpp_accepts) {
        const Exception *exception = explain_acceptance(comparison);
        if (exception == nullptr) {
            verdict.disagreement = "one side refuses it";
        } else {
            verdict.outcome = exception->name;
            if (exception->goes_away_in_shortest_form) {
                check_shortest_form(type, wire->fields, message.get(), verdict);
            }
        }
    } else if (const Exception *exception = explain_content(comparison)) {
        verdict.outcome = exception->name;
    } else {
        verdict.outcome = "accepted";
        verdict.disagreement = compare_content(type, engine, *message);
        if (verdict.disagreement.empty()) {
            if (!wire) verdict.disagreement = "the tests' own reader refuses it";
            else compare_with_protobuf_c(type, input, wire->facts, *message, verdict);
        }
    }
    if (!verdict.disagreement.empty()) {
        verdict.disagreement += "\n  ours: " + describe(engine) + "\n  C++:  " + describe(message.get());
    }
}

}  // namespace

Verdict check(const MessageType &type, std::string_view input) {
    Verdict verdict;
    EngineResult engine = run_both_paths(type, input, false, verdict);
    if (engine.status == LIFELINE_INVALID_UTF8) check_without_utf8(type, input, verdict);
    verdict.status = engine.status;
    if (verdict.disagreement.empty() && !utf8_checks_agree(input))
        verdict.disagreement = "the checks of UTF-8 by vectors and by the table differ";
    if (verdict.disagreement.empty()) compare(type, input, engine, verdict);
    return verdict;
}

std::string hex(std::string_view bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (unsigned char byte : bytes) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

}  // namespace differential
