internal import Foundation
internal import SwiftProtobuf

// The same code as in the file for the other Swift library, but for names of types.

extension SwiftBenchmark_Envelope: BenchmarkMessage {
    var number: UInt64 { seq }

    var threeFields: UInt64 {
        switch body {
        case .chat(let chat)?: seq &+ read(chat.id) &+ read(chat.text)
        case .ack(let ack)?: seq &+ ack.upTo &+ read(ack.session)
        case .ping(let ping)?: seq &+ ts &+ ping.token
        case nil: 0
        }
    }

    var allFields: UInt64 {
        let sum = seq &+ ts
        return switch body {
        case .chat(let chat)?: sum &+ chat.allFields
        case .ack(let ack)?: sum &+ ack.upTo &+ UInt64(ack.code) &+ read(ack.session)
        case .ping(let ping)?: sum &+ ping.token
        case nil: sum
        }
    }
}

extension SwiftBenchmark_SyncBatch: BenchmarkMessage {
    var number: UInt64 { cursor }

    var threeFields: UInt64 {
        var sum: UInt64 = 0
        for item in items { sum &+= item.threeFields }
        return sum
    }

    var allFields: UInt64 {
        var sum = cursor &+ read(snapshot)
        for item in items { sum &+= item.allFields }
        return sum
    }
}

extension SwiftBenchmark_ChatMessage {
    fileprivate var allFields: UInt64 {
        var sum = read(id) &+ read(from) &+ read(to) &+ read(text)
        for attachment in attachments {
            sum &+= read(attachment.url) &+ read(attachment.sha256) &+ attachment.size
        }
        for (key, value) in headers { sum &+= read(key) &+ read(value) }
        for mention in mentions { sum &+= mention }
        sum &+= UInt64(kind.rawValue) &+ UInt64(flags) &+ nonce
        if hasAuthor { sum &+= author.allFields }
        if hasTtl { sum &+= UInt64(ttl) }
        return sum
    }
}

extension SwiftBenchmark_User {
    fileprivate var allFields: UInt64 {
        id &+ read(name) &+ read(avatarURL) &+ UInt64(level) &+ (verified ? 1 : 0)
    }
}
