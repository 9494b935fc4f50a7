#include "c_contender.h"

#include <stdlib.h>

#include "builder.h"
#include "reader.h"

// A workload made ready.
struct prepared {
    struct native_workload workload;
    const ProtobufCMessageDescriptor *descriptor;
    ProtobufCMessage **messages;  // parsed, to be serialized
    ProtobufCMessage **kept;
    uint8_t *output;              // room for the largest message
    // The content from which messages are built.
    struct envelope_parts *parts;
    CBenchmark__Envelope **items;
    CBenchmark__SyncBatch batch;
};

static ProtobufCMessage *unpack(const struct prepared *prepared, size_t index) {
    struct plain_text encoded = prepared->workload.encoded[index];
    ProtobufCMessage *message =
        protobuf_c_message_unpack(prepared->descriptor, NULL, encoded.count, (const uint8_t *)encoded.bytes);
    if (!message) abort();
    return message;
}

static ProtobufCMessage *build(struct prepared *prepared, size_t index) {
    if (prepared->workload.envelopes) {
        return &build_envelope(&prepared->workload.envelopes[index], prepared->parts)->base;
    }
    build_batch(&prepared->workload.batches[index], prepared->parts, prepared->items, &prepared->batch);
    return &prepared->batch.base;
}

static void *prepare(const struct native_workload *workload) {
    struct prepared *prepared = calloc(1, sizeof *prepared);
    prepared->workload = *workload;
    prepared->descriptor = workload->envelopes ? &c_benchmark__envelope__descriptor : &c_benchmark__sync_batch__descriptor;
    prepared->messages = calloc(workload->count, sizeof *prepared->messages);
    prepared->kept = calloc(workload->count, sizeof *prepared->kept);
    size_t output_size = 0, item_count = 1;
    for (size_t i = 0; i < workload->count; i++) {
        prepared->messages[i] = unpack(prepared, i);
        if (workload->encoded[i].count > output_size) output_size = workload->encoded[i].count;
        if (workload->batches && workload->batches[i].item_count > item_count) {
            item_count = workload->batches[i].item_count;
        }
    }
    prepared->output = malloc(output_size);
    prepared->parts = calloc(item_count, sizeof *prepared->parts);
    prepared->items = calloc(item_count, sizeof *prepared->items);
    return prepared;
}

static uint64_t parse(void *pointer) {
    const struct prepared *prepared = pointer;
    uint64_t sum = 0;
    for (size_t i = 0; i < prepared->workload.count; i++) {
        ProtobufCMessage *message = unpack(prepared, i);
        sum += message->n_unknown_fields + 1;
        protobuf_c_message_free_unpacked(message, NULL);
    }
    return sum;
}

static uint64_t parse_read_3(void *pointer) {
    const struct prepared *prepared = pointer;
    uint64_t sum = 0;
    for (size_t i = 0; i < prepared->workload.count; i++) {
        ProtobufCMessage *message = unpack(prepared, i);
        sum += prepared->workload.envelopes ? envelope_three_fields((CBenchmark__Envelope *)message)
                                            : batch_three_fields((CBenchmark__SyncBatch *)message);
        protobuf_c_message_free_unpacked(message, NULL);
    }
    return sum;
}

static uint64_t parse_read_all(void *pointer) {
    const struct prepared *prepared = pointer;
    uint64_t sum = 0;
    for (size_t i = 0; i < prepared->workload.count; i++) {
        ProtobufCMessage *message = unpack(prepared, i);
        sum += prepared->workload.envelopes ? envelope_all_fields((CBenchmark__Envelope *)message)
                                            : batch_all_fields((CBenchmark__SyncBatch *)message);
        protobuf_c_message_free_unpacked(message, NULL);
    }
    return sum;
}

// Computes the size first, as a program without an upper bound has to.
static struct plain_text pack(const struct prepared *prepared, const ProtobufCMessage *message) {
    size_t size = protobuf_c_message_get_packed_size(message);
    protobuf_c_message_pack(message, prepared->output);
    return (struct plain_text){.bytes = (const char *)prepared->output, .count = size};
}

static struct plain_text serialized(void *pointer, size_t index) {
    const struct prepared *prepared = pointer;
    return pack(prepared, prepared->messages[index]);
}

static struct plain_text built(void *pointer, size_t index) {
    return pack(pointer, build(pointer, index));
}

static uint64_t serialize(void *pointer) {
    const struct prepared *prepared = pointer;
    uint64_t sum = 0;
    for (size_t i = 0; i < prepared->workload.count; i++) sum += serialized(pointer, i).count;
    return sum;
}

static uint64_t build_serialize(void *pointer) {
    const struct prepared *prepared = pointer;
    uint64_t sum = 0;
    for (size_t i = 0; i < prepared->workload.count; i++) sum += built(pointer, i).count;
    return sum;
}

static void keep(void *pointer) {
    const struct prepared *prepared = pointer;
    for (size_t i = 0; i < prepared->workload.count; i++) prepared->kept[i] = unpack(prepared, i);
}

static void release(void *pointer) {
    const struct prepared *prepared = pointer;
    for (size_t i = 0; i < prepared->workload.count; i++) protobuf_c_message_free_unpacked(prepared->kept[i], NULL);
}

const struct native_contender *c_contender(void) {
    static const struct native_contender contender = {
        .prepare = prepare,
        .parse = parse,
        .parse_read_3 = parse_read_3,
        .parse_read_all = parse_read_all,
        .serialize = serialize,
        .build_serialize = build_serialize,
        .serialized = serialized,
        .built = built,
        .keep = keep,
        .release = release,
        .handle_size = sizeof(ProtobufCMessage *),
    };
    return &contender;
}
