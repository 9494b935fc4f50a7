#include "builder.h"

#include <stdlib.h>

// libprotobuf-c's structs have non-const pointers, but serializing changes nothing.
static char *text(struct plain_text text) {
    return (char *)text.bytes;
}

static ProtobufCBinaryData bytes(struct plain_text bytes) {
    return (ProtobufCBinaryData){.len = bytes.count, .data = (uint8_t *)bytes.bytes};
}

static void build_attachments(const struct plain_chat *plain, struct envelope_parts *parts) {
    if (plain->attachment_count > PLAIN_MAX_ATTACHMENTS) abort();
    for (size_t i = 0; i < plain->attachment_count; i++) {
        CBenchmark__Attachment *attachment = &parts->attachments[i];
        c_benchmark__attachment__init(attachment);
        attachment->url = text(plain->attachments[i].url);
        attachment->sha256 = bytes(plain->attachments[i].sha256);
        attachment->size = plain->attachments[i].size;
        parts->attachment_pointers[i] = attachment;
    }
    parts->chat.attachments = parts->attachment_pointers;
    parts->chat.n_attachments = plain->attachment_count;
}

static void build_headers(const struct plain_chat *plain, struct envelope_parts *parts) {
    if (plain->header_count > PLAIN_MAX_HEADERS) abort();
    for (size_t i = 0; i < plain->header_count; i++) {
        CBenchmark__ChatMessage__HeadersEntry *header = &parts->headers[i];
        c_benchmark__chat_message__headers_entry__init(header);
        header->key = text(plain->headers[i].key);
        header->value = text(plain->headers[i].value);
        parts->header_pointers[i] = header;
    }
    parts->chat.headers = parts->header_pointers;
    parts->chat.n_headers = plain->header_count;
}

static void build_author(const struct plain_user *plain, struct envelope_parts *parts) {
    CBenchmark__User *author = &parts->author;
    c_benchmark__user__init(author);
    author->id = plain->id;
    author->name = text(plain->name);
    author->avatar_url = text(plain->avatar_url);
    author->level = plain->level;
    author->verified = plain->verified;
    parts->chat.author = author;
}

static void build_chat(const struct plain_chat *plain, struct envelope_parts *parts) {
    CBenchmark__ChatMessage *chat = &parts->chat;
    c_benchmark__chat_message__init(chat);
    chat->id = text(plain->id);
    chat->from = text(plain->from);
    chat->to = text(plain->to);
    chat->text = text(plain->text);
    build_attachments(plain, parts);
    build_headers(plain, parts);
    chat->mentions = (uint64_t *)plain->mentions;
    chat->n_mentions = plain->mention_count;
    chat->kind = (CBenchmark__Kind)plain->kind;
    chat->flags = plain->flags;
    if (plain->author) build_author(plain->author, parts);
    if (plain->ttl) {
        chat->ttl_presence_case = C_BENCHMARK__CHAT_MESSAGE__TTL_PRESENCE_TTL;
        chat->ttl = *plain->ttl;
    }
    chat->nonce = plain->nonce;
}

CBenchmark__Envelope *build_envelope(const struct plain_envelope *plain, struct envelope_parts *parts) {
    CBenchmark__Envelope *envelope = &parts->envelope;
    c_benchmark__envelope__init(envelope);
    envelope->seq = plain->seq;
    envelope->ts = plain->ts;
    if (plain->chat) {
        build_chat(plain->chat, parts);
        envelope->chat = &parts->chat;
        envelope->body_case = C_BENCHMARK__ENVELOPE__BODY_CHAT;
    } else if (plain->ack) {
        c_benchmark__ack__init(&parts->ack);
        parts->ack.up_to = plain->ack->up_to;
        parts->ack.code = plain->ack->code;
        parts->ack.session = text(plain->ack->session);
        envelope->ack = &parts->ack;
        envelope->body_case = C_BENCHMARK__ENVELOPE__BODY_ACK;
    } else {
        c_benchmark__ping__init(&parts->ping);
        parts->ping.token = plain->token;
        envelope->ping = &parts->ping;
        envelope->body_case = C_BENCHMARK__ENVELOPE__BODY_PING;
    }
    return envelope;
}

void build_batch(
    const struct plain_batch *plain, struct envelope_parts *parts, CBenchmark__Envelope **items,
    CBenchmark__SyncBatch *batch) {
    c_benchmark__sync_batch__init(batch);
    for (size_t i = 0; i < plain->item_count; i++) items[i] = build_envelope(&plain->items[i], &parts[i]);
    batch->items = items;
    batch->n_items = plain->item_count;
    batch->snapshot = bytes(plain->snapshot);
    batch->cursor = plain->cursor;
}
