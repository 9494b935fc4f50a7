// What a contender that is not written in Swift offers.
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
    // A workload made ready; it and what it refers to live as long as the process. What is below takes it.
    void *(*prepare)(const struct native_workload *workload);

    // Each goes through all messages of the workload once, and returns a sum that is the same each time, so that no
    // compiler can leave anything out. The sums of what is read are the same for all contenders.
    uint64_t (*parse)(void *prepared);
    uint64_t (*parse_read_3)(void *prepared);
    uint64_t (*parse_read_all)(void *prepared);
    uint64_t (*serialize)(void *prepared);
    uint64_t (*build_serialize)(void *prepared);
    // NULL where the contender has no JSON.
    uint64_t (*json_parse)(void *prepared);
    uint64_t (*json_print)(void *prepared);

    // What the functions above serialize the message at `index` to: valid until the next call.
    struct plain_text (*serialized)(void *prepared, size_t index);
    struct plain_text (*built)(void *prepared, size_t index);
    struct plain_text (*printed)(void *prepared, size_t index);
    // Serializes the message that json_parse reads, likewise.
    struct plain_text (*parsed_json)(void *prepared, size_t index);

    // Parses all messages and keeps them until `release`.
    void (*keep)(void *prepared);
    void (*release)(void *prepared);

    // Bytes of what a program keeps of a message itself, to reach the rest by. They are not on the heap when `keep` is
    // called: `prepare` made room.
    size_t handle_size;
};

#endif
