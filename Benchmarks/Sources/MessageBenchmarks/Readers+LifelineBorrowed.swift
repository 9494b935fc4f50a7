internal import LifelineMessages

// The same readers as in the other two files, but without making strings or copies: closures borrow spans of the
// message's memory.

@inline(__always) private func read(_ text: UTF8Span) -> UInt64 { read(text.span) }

@inline(__always) private func read(_ bytes: Span<UInt8>) -> UInt64 {
    UInt64(bytes.count) &+ (bytes.isEmpty ? 0 : UInt64(bytes[0]))
}

extension Benchmark_Envelope: BorrowingMessage {
    var borrowedThreeFields: UInt64 {
        switch body {
        case .chat(let chat)?: seq &+ chat.withIDUTF8Span { read($0) } &+ chat.withTextUTF8Span { read($0) }
        case .ack(let ack)?: seq &+ ack.upTo &+ ack.withSessionUTF8Span { read($0) }
        case .ping(let ping)?: seq &+ ts &+ ping.token
        case nil: 0
        }
    }

    var borrowedAllFields: UInt64 {
        let sum = seq &+ ts
        return switch body {
        case .chat(let chat)?: sum &+ chat.borrowedAllFields
        case .ack(let ack)?: sum &+ ack.upTo &+ UInt64(ack.code) &+ ack.withSessionUTF8Span { read($0) }
        case .ping(let ping)?: sum &+ ping.token
        case nil: sum
        }
    }
}

extension Benchmark_SyncBatch: BorrowingMessage {
    var borrowedThreeFields: UInt64 {
        var sum: UInt64 = 0
        items.forEach { sum &+= $0.borrowedThreeFields }
        return sum
    }

    var borrowedAllFields: UInt64 {
        var sum = cursor &+ withSnapshotSpan { read($0) }
        items.forEach { sum &+= $0.borrowedAllFields }
        return sum
    }
}

extension Benchmark_ChatMessage {
    fileprivate var borrowedAllFields: UInt64 {
        var sum = withIDUTF8Span { read($0) } &+ withFromUTF8Span { read($0) }
        sum &+= withToUTF8Span { read($0) } &+ withTextUTF8Span { read($0) }
        attachments.forEach {
            sum &+= $0.withURLUTF8Span { read($0) } &+ $0.withSha256Span { read($0) } &+ $0.size
        }
        headers.forEachUTF8Span { key, value in sum &+= read(key) &+ read(value) }
        for mention in mentions { sum &+= mention }
        sum &+= UInt64(kind.rawValue) &+ UInt64(flags) &+ nonce
        if hasAuthor { sum &+= author.borrowedAllFields }
        if hasTtl { sum &+= UInt64(ttl) }
        return sum
    }
}

extension Benchmark_User {
    fileprivate var borrowedAllFields: UInt64 {
        id &+ withNameUTF8Span { read($0) } &+ withAvatarURLUTF8Span { read($0) } &+ UInt64(level) &+ (verified ? 1 : 0)
    }
}
