/// Makes the content of messages, the same in every run.
struct WorkloadGenerator {
    // An arbitrary seed. With this one, a frame of the mix has 300 bytes on average.
    private var random = SplitMix64(state: 11)

    mutating func ack(_ index: UInt64) -> PlainEnvelope {
        let ack = PlainAck(upTo: 4_999_990 + index, code: 200, session: identifier(8))
        return envelope(index, .ack(ack))
    }

    /// A message with all fields set, or, if `varied`, with a random selection of fields.
    mutating func chat(_ index: UInt64, varied: Bool) -> PlainEnvelope {
        envelope(index, .chat(varied ? variedMessage(index) : fullMessage(index)))
    }

    /// The frames of a connection: seven in ten are messages, two acknowledgements, one a ping.
    mutating func mix(count: UInt64) -> [PlainEnvelope] {
        (0..<count).map { index in
            switch random.below(10) {
            case 0..<7: chat(index, varied: true)
            case 7..<9: ack(index)
            default: envelope(index, .ping(token: random.next() >> 24))
            }
        }
    }

    mutating func batch(itemCount: UInt64, snapshotSize: Int) -> PlainBatch {
        PlainBatch(
            items: (0..<itemCount).map { chat($0, varied: true) },
            snapshot: bytes(snapshotSize),
            cursor: 123_456_789
        )
    }
}

// MARK: - Parts of messages

extension WorkloadGenerator {
    private func envelope(_ index: UInt64, _ body: PlainEnvelope.Body) -> PlainEnvelope {
        PlainEnvelope(seq: 5_000_000 + index, ts: 1_760_000_000_000 + index * 37, body: body)
    }

    private mutating func fullMessage(_ index: UInt64) -> PlainChat {
        PlainChat(
            id: identifier(26),
            from: "u_" + identifier(16),
            to: "room_" + identifier(14),
            text: text(byteCount: 115, isInternational: true),
            attachments: attachments(1),
            headers: headers(2),
            mentions: mentions(3),
            kind: 1,
            flags: flags(),
            author: user(index),
            ttl: ttl(),
            nonce: random.next()
        )
    }

    private mutating func variedMessage(_ index: UInt64) -> PlainChat {
        let isInternational = random.happens(percent: 20)
        return PlainChat(
            id: identifier(26),
            from: "u_" + identifier(16),
            to: "room_" + identifier(14),
            text: text(byteCount: 15 + Int(random.below(245)), isInternational: isInternational),
            attachments: attachments(random.choice(of: [0, 0, 1, 1, 2])),
            headers: headers(random.choice(of: [0, 1, 2, 3])),
            mentions: mentions(random.choice(of: [0, 0, 0, 1, 2, 5])),
            kind: random.choice(of: [1, 1, 1, 2, 3]),
            flags: random.happens(percent: 50) ? flags() : 0,
            author: random.happens(percent: 80) ? user(index) : nil,
            ttl: random.happens(percent: 30) ? ttl() : nil,
            nonce: random.happens(percent: 50) ? random.next() : 0
        )
    }

    private mutating func user(_ index: UInt64) -> PlainUser {
        PlainUser(
            id: 10_000_000_000 + index,
            name: text(byteCount: 10, isInternational: false),
            avatarURL: "https://cdn.example.com/u/\(identifier(6)).png",
            level: Int32(1 + random.below(89)),
            isVerified: index % 2 == 1
        )
    }

    private mutating func attachments(_ count: Int) -> [PlainAttachment] {
        (0..<count).map { _ in
            PlainAttachment(
                url: "https://cdn.example.com/a/\(identifier(10)).jpg",
                sha256: bytes(32),
                size: 1_000 + random.below(9_000_000)
            )
        }
    }

    private mutating func headers(_ count: Int) -> [PlainHeader] {
        let headers = [
            PlainHeader(key: "x-trace", value: "00-" + identifier(16)),
            PlainHeader(key: "lang", value: "en-GB"),
            PlainHeader(key: "client", value: "linux/6.1.0"),
        ]
        return Array(headers.prefix(count))
    }

    private mutating func mentions(_ count: Int) -> [UInt64] {
        (0..<count).map { _ in 1 << 20 + random.below(1 << 34) }
    }

    private mutating func flags() -> Int32 { Int32(1 + random.below(499)) }
    private mutating func ttl() -> UInt32 { UInt32(1 + random.below(86_400)) }

    private mutating func bytes(_ count: Int) -> PlainBytes {
        PlainBytes((0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 32) })
    }

    /// Digits and capital letters, as in identifiers.
    private mutating func identifier(_ length: Int) -> String {
        let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".unicodeScalars)
        var identifier = ""
        for _ in 0..<length { identifier.unicodeScalars.append(random.choice(of: alphabet)) }
        return asReceived(identifier)
    }

    /// Words of at least `byteCount` bytes in all. If `isInternational`, three in ten are not ASCII.
    private mutating func text(byteCount: Int, isInternational: Bool) -> String {
        let english = [
            "the", "train", "leaves", "at", "nine", "so", "bring", "your", "notes", "and", "a", "cup", "of", "coffee",
            "we", "can", "talk", "about", "release", "later", "today", "sure", "perfect", "why", "not",
        ]
        let others = ["déjà", "für", "добрый", "明日", "🚆", "👋🏽", "mañana", "smörgås"]
        var text = ""
        while text.utf8.count < byteCount {
            if !text.isEmpty { text += " " }
            text += random.choice(of: isInternational && random.happens(percent: 30) ? others : english)
        }
        return asReceived(text)
    }

    /// As in programs: a String that has grown keeps spare capacity, and short ones are then not stored inline.
    private func asReceived(_ text: String) -> String { String(decoding: Array(text.utf8), as: UTF8.self) }
}

/// A pseudo-random number generator whose numbers are the same with every version of Swift (Steele, Lea and Flood,
/// "Fast Splittable Pseudorandom Number Generators", 2014).
private struct SplitMix64 {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: UInt64) -> UInt64 { next() % bound }
    mutating func happens(percent: UInt64) -> Bool { below(100) < percent }
    mutating func choice<Element>(of elements: [Element]) -> Element { elements[Int(below(UInt64(elements.count)))] }
}
