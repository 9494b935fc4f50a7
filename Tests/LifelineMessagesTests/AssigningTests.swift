import LifelineProtos
import Testing

@testable import LifelineMessages

/// Submessages, lists and maps that are assigned as a whole, from any message.
@Suite struct AssigningTests {
    // MARK: From the message itself

    /// The state of a message's memory when a part of itself is assigned to it.
    enum Sharing: CaseIterable {
        case unshared, shared
        /// Many changes have left garbage, so the next change moves it to new memory.
        case overdue
    }

    private func example() -> ChatMessage {
        .with {
            $0.id = "an id that is too long to be in a String itself"
            $0.attachments = [.with { $0.url = "a picture of something" }, .with { $0.size = 7 }]
            $0.headers = ["language": "a language that few people speak", "": ""]
            $0.mentions = [1, 2, 3]
            $0.author.name = "an author with a long name"
            $0.replyTo.text = "the first answer of them all"
            $0.replyTo.replyTo.text = "the question that it answers"
        }
    }

    /// Changes an example in each way of sharing, and compares it with the expected value.
    private func expect(
        _ sharing: Sharing,
        _ change: (inout ChatMessage) -> Void,
        is expected: ChatMessage
    ) {
        var message = example()
        var copies: [ChatMessage] = []
        switch sharing {
        case .unshared: break
        case .shared: copies.append(message)
        case .overdue:
            for length in stride(from: 1, through: 20_000, by: 1_000) {
                message.text = String(repeating: "x", count: length)
                if message._message.untyped.storage.unsafelyUnwrapped.isOverdue { break }
            }
            #expect(message._message.untyped.storage.unsafelyUnwrapped.isOverdue)
            message.text = ""
        }
        change(&message)
        #expect(message == expected)
        #expect(copies.allSatisfy { $0 == example() })
        // Its memory is separate: later changes do not affect the source.
        message.attachments.append(.with { $0.url = "later" })
        message.headers["later"] = "x"
        message.author.name = "later"
        #expect(copies.allSatisfy { $0 == example() })
    }

    @Test(arguments: Sharing.allCases) func aPartToItself(_ sharing: Sharing) {
        expect(sharing, { $0.attachments = $0.attachments }, is: example())
        expect(sharing, { $0.headers = $0.headers }, is: example())
        expect(sharing, { $0.mentions = $0.mentions }, is: example())
        expect(sharing, { $0.author = $0.author }, is: example())
    }

    @Test(arguments: Sharing.allCases) func aPartOfAPartToThePart(_ sharing: Sharing) {
        var expected = example()
        expected.replyTo = .with { $0.text = "the question that it answers" }
        expect(sharing, { $0.replyTo = $0.replyTo.replyTo }, is: expected)
    }

    // MARK: Copies

    @Test func longListsTakeMoreThanTheAllowance() throws {
        let texts = (0..<1_000).map { "\($0)" + String(repeating: "x", count: 100) }
        let attachments = texts.map { text in Sample_Chat_V1_Attachment.with { $0.url = text } }
        let headers = Dictionary(uniqueKeysWithValues: texts.map { ($0, $0) })
        let full = ChatMessage.with {
            $0.poll.choices = RepeatedField(texts)
            $0.attachments = RepeatedField(attachments)
            $0.headers = MapField(headers)
        }
        func expectAll(_ message: ChatMessage) {
            #expect(Array(message.poll.choices) == texts)
            #expect(Array(message.attachments) == attachments)
            #expect(Dictionary(message.headers) == headers)
            #expect(message == full)
        }
        expectAll(full)

        var other = ChatMessage.with { $0.flags = 1 }
        other.flags = 0
        other.poll.choices = full.poll.choices
        other.attachments = full.attachments
        other.headers = full.headers
        expectAll(other)

        // In a lent message, and in place of a lent list.
        var outer = ChatMessage.with { $0.replyTo.attachments = [.with { $0.size = 1 }] }
        outer.replyTo.poll.choices = full.poll.choices
        func replace(_ list: inout RepeatedField<Sample_Chat_V1_Attachment>) { list = full.attachments }
        replace(&outer.replyTo.attachments)
        outer.replyTo.headers = full.headers
        expectAll(outer.replyTo)
        expectAll(full)
    }

    @Test func anEmptiedListLeavesNothing() {
        var message = example()
        message.attachments.removeAll(keepingCapacity: true)
        let other = ChatMessage.with { $0.attachments = message.attachments }
        #expect(other == ChatMessage() && other.attachments.isEmpty)

        var kept: RepeatedField<Sample_Chat_V1_Attachment> = []
        func empty(_ list: inout RepeatedField<Sample_Chat_V1_Attachment>) {
            kept = list
            list.removeAll(keepingCapacity: true)
        }
        message = example()
        empty(&message.attachments)
        #expect(message.attachments.isEmpty && kept == example().attachments)
        message.attachments.append(.with { $0.size = 9 })
        #expect(message.attachments.map(\.size) == [9] && kept == example().attachments)
    }

    /// Text that is not UTF-8 still reads as U+FFFD in the message to which it is assigned.
    @Test func malformedTextIsCopiedAsIs() throws {
        // The fields 5 (an attachment with a URL), 6 (an entry of a map) and 16 (a poll with a choice).
        let bytes: [UInt8] = [
            0x2A, 3, 0x0A, 1, 0xFF, 0x32, 6, 0x0A, 1, 0x61, 0x12, 1, 0xFF, 0x82, 0x01, 3, 0x12, 1, 0xFF,
        ]
        let bad = try ChatMessage(serializedBytes: bytes, options: DecodingOptions(validatesUTF8: false))
        func readsAsReplaced(_ message: ChatMessage) -> Bool {
            message.attachments.map(\.url) == ["\u{FFFD}"] && message.headers["a"] == "\u{FFFD}"
                && Array(message.poll.choices) == ["\u{FFFD}"]
        }
        #expect(readsAsReplaced(bad))
        var target = example()
        target.attachments = bad.attachments
        target.headers = bad.headers
        target.poll.choices = bad.poll.choices
        #expect(readsAsReplaced(target))
        #expect(try target.serializedBytes().count { $0 == 0xFF } == 3)

        var (first, second) = (bad, example())
        swap(&first.headers, &second.headers)
        #expect(second.headers["a"] == "\u{FFFD}" && first.headers == example().headers)
    }

    // MARK: Numbers

    private struct Interruption: Error {}

    private func add(_ number: Int32, to place: inout Int32, throwing: Bool) throws {
        place += number
        if throwing { throw Interruption() }
    }

    @Test func numbersAreChangedInPlace() throws {
        var message = example()
        let copy = message
        try add(5, to: &message.flags, throwing: false)
        #expect(message.flags == 5 && copy.flags == 0)
        // A change before an error stays, as in a variable.
        #expect(throws: Interruption.self) { try add(1, to: &message.flags, throwing: true) }
        #expect(message.flags == 6 && copy.flags == 0)

        let another = message
        try add(7, to: &message.replyTo.flags, throwing: false)
        #expect(throws: Interruption.self) { try add(1, to: &message.replyTo.flags, throwing: true) }
        #expect(message.replyTo.flags == 8 && another.replyTo.flags == 0)
        #expect(copy == example())
    }
}
