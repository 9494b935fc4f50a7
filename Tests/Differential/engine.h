// The message engine under test, behind an interface of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lifeline.h"

namespace differential {

enum class DecodePath { tail_calls, plain };

// The engine's result for an input.
struct EngineResult {
    LifelineStatus status = LIFELINE_OK;
    size_t offset = 0;          // of a failure
    uint32_t field_number = 0;  // of a failure
    std::string encoded;        // the message that was decoded, encoded again
    bool missing_required = false;
    std::string broken_law;     // the broken rules of the engine itself; empty if there are none

    bool accepted() const { return status == LIFELINE_OK; }
};

bool operator==(const EngineResult &left, const EngineResult &right);

// Decodes the input from memory of exactly its size and slop of random bytes behind it.
EngineResult run_engine(
    const LifelineMessageTable *table, std::string_view input, DecodePath path, uint64_t slop_seed,
    bool accept_malformed_text = false);

// Whether the vector check and the table check of UTF-8 agree, on the whole input and on some of its suffixes.
bool utf8_checks_agree(std::string_view input);

const char *name_of(LifelineStatus status);

}  // namespace differential
