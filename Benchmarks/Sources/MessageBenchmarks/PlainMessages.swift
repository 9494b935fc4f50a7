internal import Foundation

// The content of messages as plain Swift values: what a program has before it builds messages.

struct PlainUser {
    var id: UInt64
    var name: String
    var avatarURL: String
    var level: Int32
    var isVerified: Bool
}

struct PlainAttachment {
    var url: String
    var sha256: PlainBytes
    var size: UInt64
}

struct PlainHeader {
    var key: String
    var value: String
}

struct PlainChat {
    var id: String
    var from: String
    var to: String
    var text: String
    var attachments: [PlainAttachment] = []
    var headers: [PlainHeader] = []
    var mentions: [UInt64] = []
    var kind: Int
    var flags: Int32 = 0
    var author: PlainUser?
    var ttl: UInt32?
    var nonce: UInt64 = 0
}

struct PlainAck {
    var upTo: UInt64
    var code: UInt32
    var session: String
}

struct PlainEnvelope {
    var seq: UInt64
    var ts: UInt64
    var body: Body

    enum Body {
        case chat(PlainChat)
        case ack(PlainAck)
        case ping(token: UInt64)
    }
}

struct PlainBatch {
    var items: [PlainEnvelope]
    var snapshot: PlainBytes
    var cursor: UInt64
}

/// Bytes as each library takes them, so that no contender pays for a conversion.
struct PlainBytes {
    var array: [UInt8]
    var data: Data

    init(_ bytes: [UInt8]) {
        array = bytes
        data = Data(bytes)
    }
}
