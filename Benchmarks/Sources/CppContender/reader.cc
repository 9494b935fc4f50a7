#include "reader.h"

#include <string>

static uint64_t text(const std::string &text) {
    return text.size() + (text.empty() ? 0 : static_cast<uint8_t>(text[0]));
}

uint64_t three_fields(const benchmark::Envelope &envelope) {
    switch (envelope.body_case()) {
    case benchmark::Envelope::kChat: return envelope.seq() + text(envelope.chat().id()) + text(envelope.chat().text());
    case benchmark::Envelope::kAck: return envelope.seq() + envelope.ack().up_to() + text(envelope.ack().session());
    case benchmark::Envelope::kPing: return envelope.seq() + envelope.ts() + envelope.ping().token();
    default: return 0;
    }
}

uint64_t three_fields(const benchmark::SyncBatch &batch) {
    uint64_t sum = 0;
    for (const auto &item : batch.items()) sum += three_fields(item);
    return sum;
}

static uint64_t all_fields(const benchmark::User &user) {
    return user.id() + text(user.name()) + text(user.avatar_url()) + static_cast<uint64_t>(user.level())
        + (user.verified() ? 1 : 0);
}

static uint64_t all_fields(const benchmark::ChatMessage &chat) {
    uint64_t sum = text(chat.id()) + text(chat.from()) + text(chat.to()) + text(chat.text());
    for (const auto &attachment : chat.attachments()) {
        sum += text(attachment.url()) + text(attachment.sha256()) + attachment.size();
    }
    for (const auto &header : chat.headers()) sum += text(header.first) + text(header.second);
    for (uint64_t mention : chat.mentions()) sum += mention;
    sum += static_cast<uint64_t>(chat.kind()) + static_cast<uint64_t>(chat.flags()) + chat.nonce();
    if (chat.has_author()) sum += all_fields(chat.author());
    if (chat.has_ttl()) sum += chat.ttl();
    return sum;
}

uint64_t all_fields(const benchmark::Envelope &envelope) {
    uint64_t sum = envelope.seq() + envelope.ts();
    switch (envelope.body_case()) {
    case benchmark::Envelope::kChat: return sum + all_fields(envelope.chat());
    case benchmark::Envelope::kAck:
        return sum + envelope.ack().up_to() + envelope.ack().code() + text(envelope.ack().session());
    case benchmark::Envelope::kPing: return sum + envelope.ping().token();
    default: return sum;
    }
}

uint64_t all_fields(const benchmark::SyncBatch &batch) {
    uint64_t sum = batch.cursor() + text(batch.snapshot());
    for (const auto &item : batch.items()) sum += all_fields(item);
    return sum;
}
