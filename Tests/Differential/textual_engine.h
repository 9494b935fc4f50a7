// The engine's JSON and text format under test, behind an interface of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lifeline.h"
#include "types.h"

namespace differential {

enum class TextualFormat { json, text };

// Far above the memory that any input here needs.
constexpr uint32_t ample_budget = uint32_t{1} << 25;

struct ParseSettings {
    uint32_t maximum_depth = 100;
    bool ignores_unknown = false;
    uint32_t budget = ample_budget;  // in units of an arena's budget
};

// The outcome of parsing a text.
struct Parsed {
    LifelineStatus status = LIFELINE_OK;
    size_t offset = 0;          // of a failure
    uint32_t field_number = 0;  // of a failure
    const LifelineMessageTable *message = nullptr;  // of a failure
    std::string encoded;        // the message, encoded
    std::string broken_law;     // the broken rules of the engine itself; empty if there are none

    bool accepted() const { return status == LIFELINE_OK; }
};

struct PrintSettings {
    // Of JSON.
    bool enums_as_numbers = false;
    bool int64_as_numbers = false;
    bool proto_names = false;
    bool absent_fields = false;
    // Of text format.
    bool in_one_line = false;
    bool unknown_fields = true;
};

struct Printed {
    LifelineStatus status = LIFELINE_OK;
    std::string text;

    bool accepted() const { return status == LIFELINE_OK; }
};

// The types that a google.protobuf.Any may hold. They must outlive all calls below.
void set_known_types(const std::vector<MessageType> &types);

// Parses the text, from memory of exactly its size. Only spaces may follow a value of JSON.
Parsed parse_text(
    TextualFormat format, const LifelineMessageTable *table, std::string_view text, const ParseSettings &settings);

// Decodes a message and prints it. The printer starts with `capacity` bytes of memory.
Printed print_text(
    TextualFormat format, const LifelineMessageTable *table, std::string_view encoded, const PrintSettings &settings,
    size_t capacity = 0);

}  // namespace differential
