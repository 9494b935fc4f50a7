internal import Foundation
internal import SwiftProtobuf

// The same code as in the file for the other Swift library, but that types have other names and bytes are `Data`.

extension SwiftBenchmark_Envelope {
    init(_ plain: PlainEnvelope) {
        self.init()
        seq = plain.seq
        ts = plain.ts
        switch plain.body {
        case .chat(let plain): chat.set(plain)
        case .ack(let plain): ack.set(plain)
        case .ping(let token): ping.token = token
        }
    }
}

extension SwiftBenchmark_SyncBatch {
    init(_ plain: PlainBatch) {
        self.init()
        for item in plain.items { items.append(SwiftBenchmark_Envelope(item)) }
        snapshot = plain.snapshot.data
        cursor = plain.cursor
    }
}

extension SwiftBenchmark_ChatMessage {
    fileprivate mutating func set(_ plain: PlainChat) {
        id = plain.id
        from = plain.from
        to = plain.to
        text = plain.text
        for attachment in plain.attachments { attachments.append(SwiftBenchmark_Attachment(attachment)) }
        for header in plain.headers { headers[header.key] = header.value }
        mentions.append(contentsOf: plain.mentions)
        kind = SwiftBenchmark_Kind(rawValue: plain.kind) ?? .unknown
        flags = plain.flags
        if let plain = plain.author { author.set(plain) }
        if let plain = plain.ttl { ttl = plain }
        nonce = plain.nonce
    }
}

extension SwiftBenchmark_Attachment {
    fileprivate init(_ plain: PlainAttachment) {
        self.init()
        url = plain.url
        sha256 = plain.sha256.data
        size = plain.size
    }
}

extension SwiftBenchmark_User {
    mutating func set(_ plain: PlainUser) {
        id = plain.id
        name = plain.name
        avatarURL = plain.avatarURL
        level = plain.level
        verified = plain.isVerified
    }
}

extension SwiftBenchmark_Ack {
    mutating func set(_ plain: PlainAck) {
        upTo = plain.upTo
        code = plain.code
        session = plain.session
    }
}
