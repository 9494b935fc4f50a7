// The content of messages as plain values, from which contenders build their messages.
#ifndef PLAIN_MESSAGES_H
#define PLAIN_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// More than in any message of the workloads.
enum { PLAIN_MAX_ATTACHMENTS = 4, PLAIN_MAX_HEADERS = 4 };

struct plain_text {
    const char *bytes;  // text has a NUL behind it
    size_t count;
};

struct plain_user {
    uint64_t id;
    struct plain_text name, avatar_url;
    int32_t level;
    bool verified;
};

struct plain_attachment {
    struct plain_text url, sha256;
    uint64_t size;
};

struct plain_header {
    struct plain_text key, value;
};

struct plain_chat {
    struct plain_text id, from, to, text;
    const struct plain_attachment *attachments;
    size_t attachment_count;
    const struct plain_header *headers;
    size_t header_count;
    const uint64_t *mentions;
    size_t mention_count;
    int32_t kind, flags;
    const struct plain_user *author;  // NULL where there is none
    const uint32_t *ttl;              // likewise
    uint64_t nonce;
};

struct plain_ack {
    uint64_t up_to;
    uint32_t code;
    struct plain_text session;
};

struct plain_envelope {
    uint64_t seq, ts;
    // One of these is set: `chat`, or `ack`, or a ping with the number `token`.
    const struct plain_chat *chat;
    const struct plain_ack *ack;
    uint64_t token;
};

struct plain_batch {
    const struct plain_envelope *items;
    size_t item_count;
    struct plain_text snapshot;
    uint64_t cursor;
};

#endif
