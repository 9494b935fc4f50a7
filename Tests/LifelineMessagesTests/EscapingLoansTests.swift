import Glibc
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import Testing

/// Copies of lent parts that other threads drop, read or change while the lender takes the part back.
///
/// Not under ThreadSanitizer: it does not see Swift's reference counts, which order the last use of a dropped copy
/// before the lender's next change. So it reports false races, as for every copy-on-write class that uses
/// `isKnownUniquelyReferenced`.
@Suite(.enabled(if: dlsym(nil, "__tsan_init") == nil, "It knows no counts of references."), .timeLimit(.minutes(5)))
struct EscapingLoansTests {
    private static let roundCount = 500

    /// A twin without copies of its parts goes through the same changes.
    @Test(arguments: 1...4 as ClosedRange<UInt64>) func copiesThatGoToOtherThreads(seed: UInt64) async throws {
        var (random, twinRandom) = (SeededGenerator(seed: seed), SeededGenerator(seed: seed))
        var (message, twin) = (Self.message(), Self.message())
        var copies = Copies(areSent: true)
        var none = Copies(areSent: false)
        for round in 0..<Self.roundCount {
            change(&message, round, &random, &copies)
            change(&twin, round, &twinRandom, &none)
            try #require(message == twin, "seed \(seed), round \(round)")
            if round % 25 == 24 {
                // The message is gone, and only the copies are left.
                if Bool.random(using: &random) { message = Self.message() }
                await copies.finish()
                (message, twin) = (Self.message(), Self.message())
                twinRandom = random
            }
        }
        #expect(copies.count > Self.roundCount)
    }

    private static func message() -> ChatMessage {
        .with {
            $0.text = "a text that is longer than fifteen bytes"
            $0.author.name = "Ada"
            $0.replyTo.text = "earlier"
            $0.replyTo.author.name = "Bob"
            $0.replyTo.replyTo.text = "inner"
            $0.attachments = [.with { $0.url = "a" }, .with { $0.url = "b" }]
            $0.headers = ["key": "value"]
            $0.poll.choices = ["yes", "no"]
        }
    }

    // MARK: Changes

    private func change(
        _ message: inout ChatMessage,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        change(reply: &message.replyTo, round, &random, &copies)
        change(reply: &message.replyTo.replyTo, round, &random, &copies)
        change(author: &message.author, round, &random, &copies)
        change(attachments: &message.attachments, round, &random, &copies)
        change(headers: &message.headers, round, &random, &copies)
        change(choices: &message.poll.choices, round, &random, &copies)
        // A lent part is taken back in whatever way its scope ends.
        try? failing(&message.replyTo, round, &random, &copies)
        copies.send(message, random.fate(), as: { $0.textFormatString() }) {
            $0.replyTo.author.name = "changed"
            $0.attachments.append { $0.size = 1 }
        }
    }

    private func change(
        reply: inout ChatMessage,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        reply.flags = Int32(round)
        copies.send(reply, random.fate(), as: { $0.textFormatString() }) {
            $0.text = "changed"
            $0.author.name = "changed"
            $0.replyTo.text = "changed"
        }
        switch random.next() % 8 {
        case 0: reply.text += "!"
        case 1: reply = reply.replyTo
        case 2: reply = ChatMessage()
        case 3: change(author: &reply.author, round, &random, &copies)
        case 4: reply.replyTo.replyTo.text = String(repeating: "deep", count: round)
        default: break
        }
    }

    private func change(
        author: inout Sample_Chat_V1_User,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        copies.send(author, random.fate(), as: { $0.textFormatString() }) { $0.level += 1 }
        if Bool.random(using: &random) { author.name = "a name that needs new memory: \(round)" }
        copies.send(author, random.fate(), as: { $0.textFormatString() }) { $0.name += " changed" }
    }

    private func change(
        attachments: inout RepeatedField<Sample_Chat_V1_Attachment>,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        copies.send(attachments, random.fate(), as: \.description) { $0[0].url += " changed" }
        switch random.next() % 6 {
        case 0: attachments.swapAt(0, 1)
        case 1: attachments.append { $0.url = "\(round)" }
        case 2: attachments[1].url = String(repeating: "url", count: round)
        case 3: attachments.removeFirst(attachments.count - 2)
        default: break
        }
        copies.send(attachments[1], random.fate(), as: { $0.textFormatString() }) { $0.size += 1 }
        change(attachment: &attachments[0], round, &random, &copies)
        if random.next() % 8 == 0 {
            let kept = attachments
            attachments = []
            attachments = kept
        }
    }

    private func change(
        attachment: inout Sample_Chat_V1_Attachment,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        copies.send(attachment, random.fate(), as: { $0.textFormatString() }) { $0.content = [1, 2, 3] }
        if Bool.random(using: &random) { attachment.size = UInt64(round) }
    }

    private func change(
        headers: inout MapField<String, String>,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        copies.send(headers, random.fate(), as: \.description) { $0["changed"] = "yes" }
        switch random.next() % 4 {
        case 0: headers["key"] = "a value that needs new memory: \(round)"
        case 1: headers["key", default: ""] += "!"
        case 2: headers["\(round % 4)"] = headers["key"]
        default: headers["\(round % 4)"] = nil
        }
    }

    private func change(
        choices: inout RepeatedField<String>,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) {
        copies.send(choices, random.fate(), as: \.description) { $0.append("changed") }
        choices[Int(random.next() % 2)] = "choice \(round)"
    }

    private struct Failure: Error {}

    private func failing(
        _ reply: inout ChatMessage,
        _ round: Int,
        _ random: inout SeededGenerator,
        _ copies: inout Copies
    ) throws(Failure) {
        change(reply: &reply, round, &random, &copies)
        if Bool.random(using: &random) { throw Failure() }
    }
}

// MARK: - Copies

/// The action of a task on its copy.
private enum Fate { case drop, read, change }

extension SeededGenerator {
    fileprivate mutating func fate() -> Fate { [.drop, .read, .change][Int(next() % 3)] }
}

/// Copies of parts, each with a task.
private struct Copies {
    /// Whether copies are made at all.
    let areSent: Bool
    private(set) var count = 0
    private var tasks: [Task<Void, Never>] = []

    init(areSent: Bool) { self.areSent = areSent }

    mutating func send<Part: Sendable>(
        _ part: Part,
        _ fate: Fate,
        as text: @escaping @Sendable (Part) -> String,
        changing change: @escaping @Sendable (inout Part) -> Void
    ) {
        guard areSent else { return }
        count += 1
        let expected = text(part)
        tasks.append(
            Task.detached {
                if fate == .drop { return }
                #expect(text(part) == expected)
                guard fate == .change else { return }
                var copy = part
                change(&copy)
                #expect(text(copy) != expected)
                #expect(text(part) == expected)
            }
        )
    }

    /// Waits for the tasks.
    mutating func finish() async {
        for task in tasks { await task.value }
        tasks = []
    }
}
