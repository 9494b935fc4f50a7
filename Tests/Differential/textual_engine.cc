#include "textual_engine.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <unordered_map>

namespace differential {

namespace {

// A message of google.protobuf.Value is three messages deep for each level of JSON.
constexpr uint32_t deepest_message = 10'000;

std::unordered_map<std::string_view, const LifelineMessageTable *> known_types;

const LifelineMessageTable *find_message(void *, const char *name, size_t count) {
    auto found = known_types.find(std::string_view(name, count));
    return found == known_types.end() ? nullptr : found->second;
}

constexpr LifelineTypes lookup{find_message, find_extension, nullptr};

template <typename Float>
size_t write_shortest(Float value, uint8_t *text) {
    char *start = reinterpret_cast<char *>(text);
    return static_cast<size_t>(std::to_chars(start, start + 32, value).ptr - start);
}

class Arena {
public:
    // Without memory of the caller, so that AddressSanitizer knows every byte that is not handed out.
    explicit Arena(uint32_t budget) {
        lifeline_arena_init(&arena_, &arena_, 0, 0);
        arena_.budget = budget;
    }
    ~Arena() { lifeline_arena_destroy(&arena_); }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    LifelineArena *get() { return &arena_; }

private:
    LifelineArena arena_;
};

// Bytes on the heap, followed by `slop` more, so that AddressSanitizer detects each read beyond them.
std::unique_ptr<uint8_t[]> exact_copy(std::string_view bytes, size_t slop) {
    std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size() + slop]());
    std::copy(bytes.begin(), bytes.end(), copy.get());
    return copy;
}

// Nothing when it fails.
std::optional<std::string> encode(const LifelineMessageTable *table, const void *message) {
    LifelineEncoder encoder;
    lifeline_encoder_init(&encoder, nullptr, 0, true);
    LifelineFailure failure;
    std::optional<std::string> bytes;
    if (lifeline_message_encode(table, message, false, deepest_message, &encoder, &failure)) {
        bytes.emplace(encoder.memory + encoder.start, encoder.memory + encoder.capacity);
    }
    lifeline_encoder_destroy(&encoder);
    return bytes;
}

void *decode(const LifelineMessageTable *table, std::string_view encoded, const uint8_t *bytes, Arena &arena) {
    LifelineDecodeOptions options{deepest_message, 0, false, nullptr};
    LifelineFailure failure;
    void *message = lifeline_message_create(table, arena.get());
    bool decoded = lifeline_message_decode(
        table, message, bytes, encoded.size(), arena.get(), &options, &failure);
    return decoded ? message : nullptr;
}

// The first broken rule of those for every message that was parsed, even in part.
std::string broken_law(const LifelineMessageTable *table, const void *message, const std::string &encoded) {
    auto bytes = exact_copy(encoded, LIFELINE_INPUT_SLOP);
    Arena arena(ample_budget);
    void *again = decode(table, encoded, bytes.get(), arena);
    if (again == nullptr) return "a parsed message is encoded as a valid one";
    // Maps that are not in order would be sorted here.
    if (encode(table, again) != encoded) return "decoding and encoding a parsed message changes nothing";
    if (!lifeline_message_equal(table, message, again)) return "a parsed message equals itself decoded again";
    return "";
}

// Moves the offset behind the value.
bool parse_into(
    TextualFormat format, const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count,
    size_t &offset, Arena &arena, const ParseSettings &settings, LifelineFailure &failure) {
    if (format == TextualFormat::json) {
        LifelineJSONParseOptions options{lookup, settings.maximum_depth, settings.ignores_unknown};
        return lifeline_json_parse(table, message, bytes, count, &offset, arena.get(), &options, &failure);
    }
    LifelineTextParseOptions options{lookup, settings.maximum_depth, settings.ignores_unknown};
    offset = count;
    return lifeline_text_parse(table, message, bytes, count, arena.get(), &options, &failure);
}

bool print_from(
    TextualFormat format, const LifelineMessageTable *table, const void *message, const PrintSettings &settings,
    LifelineText &text, LifelineFailure &failure) {
    if (format == TextualFormat::json) {
        LifelineJSONPrintOptions options{
            write_shortest<double>, write_shortest<float>, lookup, deepest_message,
            settings.enums_as_numbers, settings.int64_as_numbers, settings.proto_names, settings.absent_fields};
        return lifeline_json_print(table, message, &options, &text, &failure);
    }
    LifelineTextPrintOptions options{
        write_shortest<double>, write_shortest<float>, lookup, deepest_message,
        settings.in_one_line, settings.unknown_fields};
    return lifeline_text_print(table, message, &options, &text, &failure);
}

bool only_spaces_follow(std::string_view text, size_t offset) {
    return text.find_first_not_of(" \t\r\n", offset) == std::string_view::npos;
}

}  // namespace

void set_known_types(const std::vector<MessageType> &types) {
    for (const MessageType &type : types) known_types[type.table->full_name] = type.table;
}

Parsed parse_text(
    TextualFormat format, const LifelineMessageTable *table, std::string_view text, const ParseSettings &settings) {
    Parsed parsed;
    auto bytes = exact_copy(text, 0);
    Arena arena(settings.budget);
    void *message = lifeline_message_create(table, arena.get());
    if (message == nullptr) {
        parsed.status = LIFELINE_OUT_OF_MEMORY;
        return parsed;
    }
    LifelineFailure failure;
    size_t offset = 0;
    bool accepted = parse_into(
        format, table, message, bytes.get(), text.size(), offset, arena, settings, failure);
    if (format == TextualFormat::json && !lifeline_json_is_utf8(bytes.get(), text.size())) {
        if (accepted && only_spaces_follow(text, offset)) parsed.broken_law = "what is not UTF-8 is refused";
        parsed.status = LIFELINE_INVALID_UTF8;
        return parsed;
    }
    size_t limit = settings.budget * size_t{LIFELINE_ARENA_UNIT};
    if (lifeline_arena_block_bytes(arena.get()) > limit) parsed.broken_law = "the budget bounds the memory";
    if (!accepted) {
        parsed.status = failure.status;
        parsed.offset = failure.offset;
        parsed.field_number = failure.field_number;
        parsed.message = failure.message;
        if (failure.status == LIFELINE_OK) parsed.broken_law = "a failure has a status";
        if (failure.offset > text.size()) parsed.broken_law = "a failure is inside the input";
        if (failure.message == nullptr) parsed.broken_law = "a failure names a message";
    } else if (!only_spaces_follow(text, offset)) {
        parsed.status = LIFELINE_SYNTAX;
        parsed.offset = offset;
    }
    bytes.reset();  // nothing may refer to the input any more
    std::optional<std::string> encoded = encode(table, message);
    if (!encoded) {
        parsed.broken_law = "a parsed message can be encoded";
        return parsed;
    }
    parsed.encoded = *encoded;
    if (parsed.broken_law.empty()) parsed.broken_law = broken_law(table, message, parsed.encoded);
    return parsed;
}

Printed print_text(
    TextualFormat format, const LifelineMessageTable *table, std::string_view encoded, const PrintSettings &settings,
    size_t capacity) {
    Printed printed;
    auto bytes = exact_copy(encoded, LIFELINE_INPUT_SLOP);
    Arena arena(ample_budget);
    void *message = decode(table, encoded, bytes.get(), arena);
    if (message == nullptr) {
        printed.status = LIFELINE_TRUNCATED;
        return printed;
    }
    std::unique_ptr<uint8_t[]> lent(new uint8_t[capacity]);
    LifelineText text;
    lifeline_text_init(&text, lent.get(), capacity);
    LifelineFailure failure;
    if (!print_from(format, table, message, settings, text, failure)) {
        printed.status = failure.status;
    } else {
        printed.text.assign(text.memory, text.memory + text.count);
    }
    lifeline_text_destroy(&text);
    return printed;
}

}  // namespace differential
