#include "engine.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "random.h"
#include "types.h"
#include "wire.h"

// No public header declares them.
extern "C" bool lifeline_is_utf8(const uint8_t *bytes, size_t count);
extern "C" bool lifeline_is_utf8_by_table(const uint8_t *bytes, size_t count);

namespace differential {

namespace {

// C++ libprotobuf's default, and ours.
constexpr uint32_t maximum_depth = 100;

// lifeline_encoder_init promises that a message fits into memory if it leaves this many bytes free.
constexpr size_t most_room_left_over = 88;

// Far above what any input here needs: no result may depend on it.
constexpr size_t budget = size_t{1} << 31;

class Arena {
public:
    // Without memory of the caller, so that AddressSanitizer knows every byte that is not handed out.
    Arena() {
        lifeline_arena_init(&arena_, &arena_, 0, 0);
        arena_.budget = lifeline_arena_budget(budget);
    }
    ~Arena() { lifeline_arena_destroy(&arena_); }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    LifelineArena *get() { return &arena_; }

private:
    LifelineArena arena_;
};

// Heap memory of exactly the input's size and the slop, so that AddressSanitizer detects each read beyond it.
class Input {
public:
    Input(std::string_view bytes, uint64_t slop_seed)
        : memory_(new uint8_t[bytes.size() + LIFELINE_INPUT_SLOP]), size_(bytes.size()) {
        std::copy(bytes.begin(), bytes.end(), memory_.get());
        Random random(slop_seed);
        auto byte = [&] { return static_cast<uint8_t>(random.next()); };
        std::generate_n(memory_.get() + size_, LIFELINE_INPUT_SLOP, byte);
    }

    const uint8_t *bytes() const { return memory_.get(); }
    size_t size() const { return size_; }

private:
    std::unique_ptr<uint8_t[]> memory_;
    size_t size_;
};

// The C encoder. `capacity` is the size of the memory that the caller lends it.
class Encoder {
public:
    Encoder(size_t capacity, bool can_grow) : lent_(new uint8_t[capacity]) {
        lifeline_encoder_init(&encoder_, lent_.get(), capacity, can_grow);
    }
    ~Encoder() { lifeline_encoder_destroy(&encoder_); }
    Encoder(const Encoder &) = delete;
    Encoder &operator=(const Encoder &) = delete;

    LifelineStatus put(const LifelineMessageTable *table, const void *message, bool delimited) {
        LifelineFailure failure;
        bool done = lifeline_message_encode(table, message, delimited, maximum_depth, &encoder_, &failure);
        return done ? LIFELINE_OK : failure.status;
    }

    std::string bytes() const {
        return std::string(encoder_.memory + encoder_.start, encoder_.memory + encoder_.capacity);
    }

private:
    std::unique_ptr<uint8_t[]> lent_;  // on the heap, so that AddressSanitizer sees each byte written beyond
    LifelineEncoder encoder_;
};

// Nothing when it fails.
std::optional<std::string> encode(const LifelineMessageTable *table, const void *message) {
    Encoder encoder(0, true);
    if (encoder.put(table, message, false) != LIFELINE_OK) return std::nullopt;
    return encoder.bytes();
}

// Checks the rules for the encoder. Returns the broken ones.
std::string broken_encoder_law(const LifelineMessageTable *table, const void *message, const std::string &encoded) {
    std::string delimited;
    append_varint(delimited, encoded.size());
    delimited += encoded;
    // The encoder outgrows the lent memory if that is half of the needed size, or all of it.
    for (size_t capacity : {delimited.size() / 2, delimited.size()}) {
        Encoder growing(capacity, true);
        if (growing.put(table, message, true) != LIFELINE_OK) return "an encoder that can grow does";
        if (growing.bytes() != delimited) return "a delimited encoding is length and encoding";
        if (growing.put(table, message, true) != LIFELINE_OK) return "an encoder takes more than one message";
        if (growing.bytes() != delimited + delimited) return "messages are put in front of others";
    }
    Encoder roomy(delimited.size() + most_room_left_over, false);
    if (roomy.put(table, message, true) != LIFELINE_OK) return "with 88 bytes left over there is room";
    if (roomy.bytes() != delimited) return "what room there is changes no encoding";
    Encoder full(delimited.size() - 1, false);
    if (full.put(table, message, true) != LIFELINE_NO_ROOM) return "an encoder that cannot grow says so";
    if (!full.bytes().empty()) return "an encoder that fails holds what it held before";
    return "";
}

bool decode(
    const LifelineMessageTable *table, void *message, const Input &input, Arena &arena, DecodePath path,
    bool accept_malformed_text, LifelineFailure &failure) {
    LifelineDecodeOptions options{maximum_depth, 0, accept_malformed_text, nullptr};
    auto *function = path == DecodePath::plain ? lifeline_message_decode_plain : lifeline_message_decode;
    return function(table, message, input.bytes(), input.size(), arena.get(), &options, &failure);
}

// Checks the rules for every message that was decoded without failure. Returns the broken ones.
std::string broken_law(
    const LifelineMessageTable *table, const void *message, const std::string &encoded, DecodePath path,
    bool accept_malformed_text) {
    std::string broken = broken_encoder_law(table, message, encoded);
    if (!broken.empty()) return broken;

    Input input(encoded, encoded.size());
    Arena arena;
    void *again = lifeline_message_create(table, arena.get());
    LifelineFailure failure;
    if (!decode(table, again, input, arena, path, accept_malformed_text, failure)) return "what was encoded is decoded";
    if (encode(table, again) != encoded) return "decoding and encoding changes no encoding of ours";
    if (!lifeline_message_equal(table, message, again)) return "a message equals itself decoded again";

    void *copy = lifeline_message_copy(table, message, arena.get());
    if (copy == nullptr) return "a message can be copied";
    if (encode(table, copy) != encoded) return "a copy is encoded as its original is";
    if (!lifeline_message_equal(table, message, copy)) return "a copy equals its original";
    return "";
}

}  // namespace

bool operator==(const EngineResult &left, const EngineResult &right) {
    return left.status == right.status && left.offset == right.offset && left.field_number == right.field_number
           && left.encoded == right.encoded && left.missing_required == right.missing_required
           && left.broken_law == right.broken_law;
}

EngineResult run_engine(
    const LifelineMessageTable *table, std::string_view bytes, DecodePath path, uint64_t slop_seed,
    bool accept_malformed_text) {
    Input input(bytes, slop_seed);
    Arena arena;
    void *message = lifeline_message_create(table, arena.get());
    LifelineFailure failure;
    EngineResult result;
    bool accepted = decode(table, message, input, arena, path, accept_malformed_text, failure);
    std::optional<std::string> encoded = encode(table, message);
    if (!accepted) {
        result.status = failure.status;
        result.offset = failure.offset;
        result.field_number = failure.field_number;
        if (failure.status == LIFELINE_OK) result.broken_law = "a failure has a status";
        if (!encoded) result.broken_law = "what a failure leaves can be encoded";
        return result;
    }
    if (!encoded) {
        result.broken_law = "what was decoded can be encoded";
        return result;
    }
    result.encoded = *encoded;
    // C++ reads extensions like other fields.
    LifelineTypes types{nullptr, find_extension, nullptr};
    LifelineDecodeOptions options{maximum_depth, lifeline_arena_budget(budget), accept_malformed_text, nullptr};
    if (!lifeline_extensions_check(table, message, &types, true, &options, &failure)) {
        result.status = failure.status;
        if (failure.status == LIFELINE_OK) result.broken_law = "a failure has a status";
        return result;
    }
    LifelineFailure missing;
    result.missing_required = lifeline_message_missing_required(table, message, &missing)
                              || !lifeline_extensions_check(table, message, &types, false, &options, &missing);
    result.broken_law = broken_law(table, message, result.encoded, path, accept_malformed_text);
    return result;
}

bool utf8_checks_agree(std::string_view input) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(input.data());
    size_t step = 1 + input.size() / 32;
    for (size_t start = 0; start < input.size(); start += step) {
        size_t count = input.size() - start;
        if (lifeline_is_utf8(bytes + start, count) != lifeline_is_utf8_by_table(bytes + start, count)) return false;
    }
    return true;
}

const char *name_of(LifelineStatus status) {
    switch (status) {
        case LIFELINE_OK: return "accepted";
        case LIFELINE_TRUNCATED: return "truncated";
        case LIFELINE_MALFORMED_VARINT: return "malformed-varint";
        case LIFELINE_INVALID_TAG: return "invalid-tag";
        case LIFELINE_UNMATCHED_GROUP: return "unmatched-group";
        case LIFELINE_INVALID_LENGTH: return "invalid-length";
        case LIFELINE_INVALID_UTF8: return "invalid-utf8";
        case LIFELINE_TOO_DEEP: return "too-deep";
        case LIFELINE_OUT_OF_MEMORY: return "out-of-memory";
        case LIFELINE_MISSING_REQUIRED: return "missing-required";
        case LIFELINE_TOO_LARGE: return "too-large";
        case LIFELINE_NO_ROOM: return "no-room";
        case LIFELINE_SYNTAX: return "syntax";
        case LIFELINE_WRONG_KIND: return "wrong-kind";
        case LIFELINE_OUT_OF_RANGE: return "out-of-range";
        case LIFELINE_UNKNOWN_FIELD: return "unknown-field";
        case LIFELINE_DUPLICATE_FIELD: return "duplicate-field";
        case LIFELINE_UNKNOWN_ENUM_VALUE: return "unknown-enum-value";
        case LIFELINE_UNKNOWN_MESSAGE: return "unknown-message";
        default: return "a status without a name";
    }
}

}  // namespace differential
