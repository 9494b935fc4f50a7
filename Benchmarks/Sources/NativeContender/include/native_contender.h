// The interface of a contender in another language.
#ifndef NATIVE_CONTENDER_H
#define NATIVE_CONTENDER_H

#include "plain_messages.h"

// Envelopes, or batches: the other array is empty.
struct native_workload {
    const struct plain_text *encoded;  // each message as bytes
    const struct plain_text *json;     // each message as JSON
    size_t count;
    const struct plain_envelope *envelopes;
    const struct plain_batch *batches;
};

struct native_contender {
    // A prepared workload for the functions below. It and its contents live as long as the process.
    void *(*prepare)(const struct native_workload *workload);

    // Each function processes all messages of the workload once, and returns a sum that is the same each time, so that
    // no compiler can omit work. The sums of read values are the same for all contenders.
    uint64_t (*parse)(void *prepared);
    uint64_t (*parse_read_3)(void *prepared);
    uint64_t (*parse_read_all)(void *prepared);
    uint64_t (*serialize)(void *prepared);
    uint64_t (*build_serialize)(void *prepared);
    // NULL where the contender has no JSON.
    uint64_t (*json_parse)(void *prepared);
    uint64_t (*json_print)(void *prepared);

    // The result of serializing the message at `index`, valid until the next call.
    struct plain_text (*serialized)(void *prepared, size_t index);
    struct plain_text (*built)(void *prepared, size_t index);
    struct plain_text (*printed)(void *prepared, size_t index);
    // Serializes the message that json_parse reads, likewise.
    struct plain_text (*parsed_json)(void *prepared, size_t index);

    // Parses all messages and keeps them until `release`.
    void (*keep)(void *prepared);
    void (*release)(void *prepared);

    // The bytes that a program keeps for a message outside of the heap, to reach the rest. `keep` allocates nothing for
    // them: `prepare` made room.
    size_t handle_size;
};

#endif
