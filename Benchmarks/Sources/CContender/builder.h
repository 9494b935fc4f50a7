#ifndef BUILDER_H
#define BUILDER_H

#include "benchmark/chat.pb-c.h"
#include "plain_messages.h"

// The parts of an envelope. A program that uses libprotobuf-c keeps such structs anywhere, and points them at existing
// strings: only serializing copies.
struct envelope_parts {
    CBenchmark__Envelope envelope;
    CBenchmark__ChatMessage chat;
    CBenchmark__Attachment attachments[PLAIN_MAX_ATTACHMENTS];
    CBenchmark__Attachment *attachment_pointers[PLAIN_MAX_ATTACHMENTS];
    CBenchmark__ChatMessage__HeadersEntry headers[PLAIN_MAX_HEADERS];
    CBenchmark__ChatMessage__HeadersEntry *header_pointers[PLAIN_MAX_HEADERS];
    CBenchmark__User author;
    CBenchmark__Ack ack;
    CBenchmark__Ping ping;
};

// The message that `parts` then holds, whose strings are those of `plain`.
CBenchmark__Envelope *build_envelope(const struct plain_envelope *plain, struct envelope_parts *parts);

// `parts` and `items` have room for each item.
void build_batch(
    const struct plain_batch *plain, struct envelope_parts *parts, CBenchmark__Envelope **items,
    CBenchmark__SyncBatch *batch);

#endif
