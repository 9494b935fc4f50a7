// Shared by the engine's fuzzers: one format of input, so that those of the binary format can also share one corpus.
//
//   byte 0   the low seven bits choose the message type (fuzz_tables.c); the highest, whether strings may be other than
//            UTF-8
//   byte 1   limits: the low four bits choose the depth, the high four the arena's budget
//   byte 2   where roundtrip splits the message, and how the message lies in memory
//   the rest the encoded message
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lifeline_extensions.h"

// Ends the run, as a crash, if `condition` is false.
#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (condition) break;                                                              \
        fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);     \
        abort();                                                                           \
    } while (0)

// A budget that no input of a fuzzer's length exhausts.
static const size_t fuzz_ample_budget = (size_t)1 << 30;

typedef struct FuzzInput {
    const LifelineMessageTable *table;
    LifelineDecodeOptions options;  // with the same budget as here
    size_t budget;                  // in bytes
    uint8_t variant;                // byte 2
    const uint8_t *message;
    size_t count;
} FuzzInput;

// False when `data` is too short to name a type and its limits.
bool fuzz_read_input(const uint8_t *data, size_t size, FuzzInput *input);

// The same input, decoded with an ample budget.
FuzzInput fuzz_with_ample_budget(const FuzzInput *input);

// A copy of encoded bytes in a heap block of exactly their size and the decoder's slop, so that AddressSanitizer sees
// each read behind it. `filler` is the content of the slop; `offset` (0 ... 7) is the distance of their begin from an
// aligned address.
typedef struct FuzzBytes {
    uint8_t *block;
    const uint8_t *bytes;
    size_t count;
} FuzzBytes;

FuzzBytes fuzz_copy_bytes(const uint8_t *bytes, size_t count, uint8_t filler, uint8_t offset);
void fuzz_free_bytes(FuzzBytes *bytes);

// A message in its own arena, and the outcome of decoding it.
typedef struct FuzzMessage {
    const LifelineMessageTable *table;
    LifelineArena arena;
    void *fields;  // NULL when the budget had no room for the struct
    LifelineFailure failure;
} FuzzMessage;

typedef bool FuzzDecoder(
    const LifelineMessageTable *table, void *message, const uint8_t *bytes, size_t count, LifelineArena *arena,
    const LifelineDecodeOptions *options, LifelineFailure *failure);

// Starts an arena that may take `budget` bytes beyond the `size` bytes of `memory`.
void fuzz_start_arena(LifelineArena *arena, void *memory, size_t size, size_t budget);

// A new message whose arena may take `budget` bytes beyond the `size` bytes of `memory`.
FuzzMessage fuzz_create_message(const LifelineMessageTable *table, void *memory, size_t size, size_t budget);
void fuzz_free_message(FuzzMessage *message);

// Decodes into `message`, checks the rules for every outcome, and returns whether it was decoded.
bool fuzz_decode(
    FuzzDecoder *decode, FuzzMessage *message, const FuzzBytes *bytes, const LifelineDecodeOptions *options);

// Checks the rules for the outcome of decoding `count` bytes into `message`.
void fuzz_check_outcome(const FuzzMessage *message, bool decoded, size_t count, const LifelineDecodeOptions *options);

// Checks that the rest of the message's budget and the memory that it took together do not exceed the budget.
void fuzz_check_budget(const FuzzMessage *message, size_t budget);

// Whether both decodings succeeded, or stopped at the same place for the same reason.
bool fuzz_same_failure(const LifelineFailure *left, const LifelineFailure *right);

// Encodes into a heap block of the exact size, which the caller frees. False, with nothing allocated, when messages are
// nested deeper than `maximum_depth`; every other failure ends the run.
bool fuzz_try_encode(
    const FuzzMessage *message, bool delimited, uint32_t maximum_depth, uint8_t **bytes, size_t *count);

// The message, which was decoded with `depth`, encoded in a heap block of its exact size, which the caller frees.
// Encoding it must succeed.
uint8_t *fuzz_encode(const FuzzMessage *message, bool delimited, uint32_t depth, size_t *count);

// The size of the largest struct that is reachable from `table`: S in the bound that lifeline_message.h states.
size_t fuzz_largest_struct(const LifelineMessageTable *table);

extern const LifelineMessageTable *const fuzz_tables[];
extern const size_t fuzz_table_count;
extern const LifelineMessageTable *const fuzz_extensions[];
extern const size_t fuzz_extension_count;

// Find the types above.
LifelineFindMessage fuzz_find_message;
LifelineFindExtension fuzz_find_extension;

// Called by libFuzzer with every input.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
