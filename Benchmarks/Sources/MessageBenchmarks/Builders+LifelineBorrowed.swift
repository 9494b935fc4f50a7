internal import LifelineMessages

// Like Builders+Lifeline.swift, but elements of repeated fields are built in place, with `append { }`.

extension Benchmark_Envelope {
    init(inPlace plain: PlainEnvelope) {
        self.init()
        setInPlace(plain)
    }

    fileprivate mutating func setInPlace(_ plain: PlainEnvelope) {
        seq = plain.seq
        ts = plain.ts
        switch plain.body {
        case .chat(let plain): chat.setInPlace(plain)
        case .ack(let plain): ack.set(plain)
        case .ping(let token): ping.token = token
        }
    }
}

extension Benchmark_SyncBatch {
    init(inPlace plain: PlainBatch) {
        self.init()
        for item in plain.items {
            items.append { $0.setInPlace(item) }
        }
        snapshot = plain.snapshot.array
        cursor = plain.cursor
    }
}

extension Benchmark_ChatMessage {
    fileprivate mutating func setInPlace(_ plain: PlainChat) {
        id = plain.id
        from = plain.from
        to = plain.to
        text = plain.text
        for attachment in plain.attachments {
            attachments.append {
                $0.url = attachment.url
                $0.sha256 = attachment.sha256.array
                $0.size = attachment.size
            }
        }
        for header in plain.headers { headers[header.key] = header.value }
        mentions.append(contentsOf: plain.mentions)
        kind = Benchmark_Kind(rawValue: plain.kind) ?? .unknown
        flags = plain.flags
        if let plain = plain.author { author.set(plain) }
        if let plain = plain.ttl { ttl = plain }
        nonce = plain.nonce
    }
}
