internal import Foundation

// The content of messages in plain Swift, as a program has it before it builds messages. These are classes with
// constants, so that passing them costs almost nothing compared with building.

final class PlainUser {
    let id: UInt64
    let name: String
    let avatarURL: String
    let level: Int32
    let isVerified: Bool

    init(
        id: UInt64,
        name: String,
        avatarURL: String,
        level: Int32,
        isVerified: Bool
    ) {
        self.id = id
        self.name = name
        self.avatarURL = avatarURL
        self.level = level
        self.isVerified = isVerified
    }
}

final class PlainAttachment {
    let url: String
    let sha256: PlainBytes
    let size: UInt64

    init(
        url: String,
        sha256: PlainBytes,
        size: UInt64
    ) {
        self.url = url
        self.sha256 = sha256
        self.size = size
    }
}

final class PlainHeader {
    let key: String
    let value: String

    init(
        key: String,
        value: String
    ) {
        self.key = key
        self.value = value
    }
}

final class PlainChat {
    let id: String
    let from: String
    let to: String
    let text: String
    let attachments: [PlainAttachment]
    let headers: [PlainHeader]
    let mentions: [UInt64]
    let kind: Int
    let flags: Int32
    let author: PlainUser?
    let ttl: UInt32?
    let nonce: UInt64

    init(
        id: String,
        from: String,
        to: String,
        text: String,
        attachments: [PlainAttachment] = [],
        headers: [PlainHeader] = [],
        mentions: [UInt64] = [],
        kind: Int,
        flags: Int32 = 0,
        author: PlainUser? = nil,
        ttl: UInt32? = nil,
        nonce: UInt64 = 0
    ) {
        self.id = id
        self.from = from
        self.to = to
        self.text = text
        self.attachments = attachments
        self.headers = headers
        self.mentions = mentions
        self.kind = kind
        self.flags = flags
        self.author = author
        self.ttl = ttl
        self.nonce = nonce
    }
}

final class PlainAck {
    let upTo: UInt64
    let code: UInt32
    let session: String

    init(
        upTo: UInt64,
        code: UInt32,
        session: String
    ) {
        self.upTo = upTo
        self.code = code
        self.session = session
    }
}

final class PlainEnvelope {
    let seq: UInt64
    let ts: UInt64
    let body: Body

    init(
        seq: UInt64,
        ts: UInt64,
        body: Body
    ) {
        self.seq = seq
        self.ts = ts
        self.body = body
    }

    enum Body {
        case chat(PlainChat)
        case ack(PlainAck)
        case ping(token: UInt64)
    }
}

final class PlainBatch {
    let items: [PlainEnvelope]
    let snapshot: PlainBytes
    let cursor: UInt64

    init(
        items: [PlainEnvelope],
        snapshot: PlainBytes,
        cursor: UInt64
    ) {
        self.items = items
        self.snapshot = snapshot
        self.cursor = cursor
    }
}

/// Bytes in each library's type, so that no contender pays for a conversion.
struct PlainBytes {
    let array: [UInt8]
    let data: Data

    init(_ bytes: [UInt8]) {
        array = bytes
        data = Data(bytes)
    }
}
