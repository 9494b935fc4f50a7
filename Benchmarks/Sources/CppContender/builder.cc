#include "builder.h"

#include <string>

static void build(const plain_user &plain, benchmark::User *user) {
    user->set_id(plain.id);
    user->set_name(plain.name.bytes, plain.name.count);
    user->set_avatar_url(plain.avatar_url.bytes, plain.avatar_url.count);
    user->set_level(plain.level);
    user->set_verified(plain.verified);
}

static void build(const plain_attachment &plain, benchmark::Attachment *attachment) {
    attachment->set_url(plain.url.bytes, plain.url.count);
    attachment->set_sha256(plain.sha256.bytes, plain.sha256.count);
    attachment->set_size(plain.size);
}

static void build(const plain_chat &plain, benchmark::ChatMessage *chat) {
    chat->set_id(plain.id.bytes, plain.id.count);
    chat->set_from(plain.from.bytes, plain.from.count);
    chat->set_to(plain.to.bytes, plain.to.count);
    chat->set_text(plain.text.bytes, plain.text.count);
    for (size_t i = 0; i < plain.attachment_count; i++) build(plain.attachments[i], chat->add_attachments());
    auto &headers = *chat->mutable_headers();
    for (size_t i = 0; i < plain.header_count; i++) {
        const plain_header &header = plain.headers[i];
        headers[std::string(header.key.bytes, header.key.count)].assign(header.value.bytes, header.value.count);
    }
    chat->mutable_mentions()->Add(plain.mentions, plain.mentions + plain.mention_count);
    chat->set_kind(static_cast<benchmark::Kind>(plain.kind));
    chat->set_flags(plain.flags);
    if (plain.author) build(*plain.author, chat->mutable_author());
    if (plain.ttl) chat->set_ttl(*plain.ttl);
    chat->set_nonce(plain.nonce);
}

static void build(const plain_ack &plain, benchmark::Ack *ack) {
    ack->set_up_to(plain.up_to);
    ack->set_code(plain.code);
    ack->set_session(plain.session.bytes, plain.session.count);
}

void build(const plain_envelope &plain, benchmark::Envelope *envelope) {
    envelope->set_seq(plain.seq);
    envelope->set_ts(plain.ts);
    if (plain.chat) {
        build(*plain.chat, envelope->mutable_chat());
    } else if (plain.ack) {
        build(*plain.ack, envelope->mutable_ack());
    } else {
        envelope->mutable_ping()->set_token(plain.token);
    }
}

void build(const plain_batch &plain, benchmark::SyncBatch *batch) {
    for (size_t i = 0; i < plain.item_count; i++) build(plain.items[i], batch->add_items());
    batch->set_snapshot(plain.snapshot.bytes, plain.snapshot.count);
    batch->set_cursor(plain.cursor);
}
