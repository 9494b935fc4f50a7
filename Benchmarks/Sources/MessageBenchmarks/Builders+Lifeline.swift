internal import LifelineMessages

// The same code as in the file for the other Swift library, but for names of types.

extension Benchmark_Envelope {
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

extension Benchmark_SyncBatch {
    init(_ plain: PlainBatch) {
        self.init()
        for item in plain.items { items.append(Benchmark_Envelope(item)) }
        snapshot = plain.snapshot.array
        cursor = plain.cursor
    }
}

extension Benchmark_ChatMessage {
    fileprivate mutating func set(_ plain: PlainChat) {
        id = plain.id
        from = plain.from
        to = plain.to
        text = plain.text
        for attachment in plain.attachments { attachments.append(Benchmark_Attachment(attachment)) }
        for header in plain.headers { headers[header.key] = header.value }
        mentions.append(contentsOf: plain.mentions)
        kind = Benchmark_Kind(rawValue: plain.kind) ?? .unknown
        flags = plain.flags
        if let plain = plain.author { author.set(plain) }
        if let plain = plain.ttl { ttl = plain }
        nonce = plain.nonce
    }
}

extension Benchmark_Attachment {
    fileprivate init(_ plain: PlainAttachment) {
        self.init()
        url = plain.url
        sha256 = plain.sha256.array
        size = plain.size
    }
}

extension Benchmark_User {
    mutating func set(_ plain: PlainUser) {
        id = plain.id
        name = plain.name
        avatarURL = plain.avatarURL
        level = plain.level
        verified = plain.isVerified
    }
}

extension Benchmark_Ack {
    mutating func set(_ plain: PlainAck) {
        upTo = plain.upTo
        code = plain.code
        session = plain.session
    }
}
