#include "reader.h"

#include <string.h>

static uint64_t text(const char *text) {
    return strlen(text) + (uint8_t)text[0];
}

static uint64_t bytes(ProtobufCBinaryData bytes) {
    return bytes.len + (bytes.len > 0 ? bytes.data[0] : 0);
}

uint64_t envelope_three_fields(const CBenchmark__Envelope *envelope) {
    switch (envelope->body_case) {
    case C_BENCHMARK__ENVELOPE__BODY_CHAT: return envelope->seq + text(envelope->chat->id) + text(envelope->chat->text);
    case C_BENCHMARK__ENVELOPE__BODY_ACK: return envelope->seq + envelope->ack->up_to + text(envelope->ack->session);
    case C_BENCHMARK__ENVELOPE__BODY_PING: return envelope->seq + envelope->ts + envelope->ping->token;
    default: return 0;
    }
}

uint64_t batch_three_fields(const CBenchmark__SyncBatch *batch) {
    uint64_t sum = 0;
    for (size_t i = 0; i < batch->n_items; i++) sum += envelope_three_fields(batch->items[i]);
    return sum;
}

static uint64_t user_all_fields(const CBenchmark__User *user) {
    return user->id + text(user->name) + text(user->avatar_url) + (uint64_t)user->level + (user->verified ? 1 : 0);
}

static uint64_t chat_all_fields(const CBenchmark__ChatMessage *chat) {
    uint64_t sum = text(chat->id) + text(chat->from) + text(chat->to) + text(chat->text);
    for (size_t i = 0; i < chat->n_attachments; i++) {
        const CBenchmark__Attachment *attachment = chat->attachments[i];
        sum += text(attachment->url) + bytes(attachment->sha256) + attachment->size;
    }
    for (size_t i = 0; i < chat->n_headers; i++) sum += text(chat->headers[i]->key) + text(chat->headers[i]->value);
    for (size_t i = 0; i < chat->n_mentions; i++) sum += chat->mentions[i];
    sum += (uint64_t)chat->kind + (uint64_t)chat->flags + chat->nonce;
    if (chat->author) sum += user_all_fields(chat->author);
    if (chat->ttl_presence_case == C_BENCHMARK__CHAT_MESSAGE__TTL_PRESENCE_TTL) sum += chat->ttl;
    return sum;
}

uint64_t envelope_all_fields(const CBenchmark__Envelope *envelope) {
    uint64_t sum = envelope->seq + envelope->ts;
    switch (envelope->body_case) {
    case C_BENCHMARK__ENVELOPE__BODY_CHAT: return sum + chat_all_fields(envelope->chat);
    case C_BENCHMARK__ENVELOPE__BODY_ACK:
        return sum + envelope->ack->up_to + envelope->ack->code + text(envelope->ack->session);
    case C_BENCHMARK__ENVELOPE__BODY_PING: return sum + envelope->ping->token;
    default: return sum;
    }
}

uint64_t batch_all_fields(const CBenchmark__SyncBatch *batch) {
    uint64_t sum = batch->cursor + bytes(batch->snapshot);
    for (size_t i = 0; i < batch->n_items; i++) sum += envelope_all_fields(batch->items[i]);
    return sum;
}
