import LifelineMessages
import LifelineProtos
import TestProtos
import Testing

/// Many tasks read and copy one message, and change their copies. Meant for ThreadSanitizer.
@Suite(.timeLimit(.minutes(5))) struct SharedMessagesTests {
    private static let taskCount = 16
    private static let roundCount = 30

    private static func message() -> ChatMessage {
        .with {
            $0 = HostileInputTests.rich()
            $0.poll.choices = ["yes", "no"]
            $0.headers = ["a": "1", "b": "2"]
        }
    }

    /// Runs `body` in many tasks at once, with the number of the task.
    private func concurrently(_ body: @escaping @Sendable (Int) throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<Self.taskCount {
                group.addTask {
                    for _ in 0..<Self.roundCount { try body(task) }
                }
            }
            try await group.waitForAll()
        }
    }

    /// A message as it was built, one that was decoded, and one that was changed after that.
    private static func variants() throws -> [ChatMessage] {
        let built = message()
        let decoded = try ChatMessage(serializedBytes: built.serializedBytes())
        var changed = decoded
        changed.text += "!"
        changed.text = built.text
        return [built, decoded, changed]
    }

    @Test(arguments: 0..<3) func reading(variant: Int) async throws {
        let shared = try Self.variants()[variant]
        let bytes = try shared.serializedBytes()
        try await concurrently { (_) throws in
            #expect(shared.text == "hello")
            #expect(shared.withTextUTF8Span { String(copying: $0) } == "hello")
            #expect(shared.author.name == "Ada")
            #expect(shared.attachments.map(\.url) == ["a", "b"])
            var urls: [String] = []
            shared.attachments.forEach { urls.append($0.url) }
            #expect(urls == ["a", "b"])
            #expect(shared.mentions.withContiguousStorageIfAvailable { $0.reduce(0, +) } == 6)
            #expect(shared.headers["b"] == "2")
            shared.headers.forEachUTF8Span { #expect($0.count == $1.count) }
            #expect(shared.poll.choices.withUTF8Span(at: 1) { String(copying: $0) } == "no")
            #expect(shared.body == .poll(shared.poll))
            let (encoded, frame) = (try shared.serializedBytes(), try shared.withDelimitedBytes { Array($0) })
            #expect(encoded == bytes)
            #expect(frame.suffix(bytes.count) == bytes[...])
            #expect(shared == shared && shared.hashValue == shared.hashValue)
            #expect(shared.textFormatString() != "")
            #expect(shared.isInitialized)
        }
    }

    @Test(arguments: 0..<3) func changingCopies(variant: Int) async throws {
        let shared = try Self.variants()[variant]
        try await concurrently { task in
            var copy = shared
            copy.text = "\(task)"
            copy.author.name = "\(task)"
            copy.attachments[0].url = "\(task)"
            copy.attachments.append { $0.url = "\(task)" }
            copy.mentions.append(UInt64(task))
            copy.headers["a"] = "\(task)"
            copy.headers["b", default: ""] += "\(task)"
            copy.poll.votes[UInt64(task)] = 0
            copy.replyTo.text += "\(task)"
            try copy.merge(serializedBytes: [0x48, 7])
            #expect(copy.text == "\(task)" && copy.author.name == "\(task)" && copy.flags == 7)
            #expect(copy.attachments.map(\.url) == ["\(task)", "b", "\(task)"])
            #expect(copy.mentions.last == UInt64(task))
            #expect(copy.headers == ["a": "\(task)", "b": "2\(task)"])
        }
        #expect(shared == Self.message())
    }

    /// Parts share the storage of the whole: of a message, of lists and of maps.
    @Test func changingParts() async throws {
        let shared = try Self.variants()[1]
        let (author, attachments, headers, reply) = (shared.author, shared.attachments, shared.headers, shared.replyTo)
        try await concurrently { task in
            var (author, attachments, headers, reply) = (author, attachments, headers, reply)
            author.name += "\(task)"
            attachments[1].url += "\(task)"
            attachments.append(attachments[1])
            headers["\(task)"] = "new"
            reply.author = author
            #expect(author.name == "Ada\(task)")
            #expect(attachments.map(\.url) == ["a", "b\(task)", "b\(task)"])
            #expect(headers.count == 3)
            #expect(reply.author.name == "Ada\(task)")
            #expect(shared.author.name == "Ada" && shared.headers.count == 2)
        }
        #expect(shared == Self.message())
    }

    /// A copy of a lent part keeps the loan, which must not be taken back while others read it.
    @Test func keptLoans() async throws {
        var message = Self.message()
        var kept = Sample_Chat_V1_User()
        func keep(_ author: inout Sample_Chat_V1_User) { kept = author }
        keep(&message.author)
        let (shared, part) = (message, kept)
        try await concurrently { task in
            var (whole, author) = (shared, part)
            #expect(part.name == "Ada" && shared.author.name == "Ada")
            whole.author.name = "\(task)"
            author.name += "\(task)"
            #expect(whole.author.name == "\(task)" && author.name == "Ada\(task)")
        }
        message.author.name = "last"
        #expect(kept.name == "Ada")
    }

    /// Messages of every type begin as one storage that all share.
    @Test func beginningWithNothing() async throws {
        let nothing = ChatMessage()
        try await concurrently { task in
            var message = nothing
            message.replyTo.author.level = Int32(task)
            #expect(message.replyTo.author.level == Int32(task))
            var list = nothing.attachments
            list.append { $0.size = UInt64(task) }
            #expect(list[0].size == UInt64(task))
            #expect(nothing.author.name == "" && nothing.headers.isEmpty && nothing == ChatMessage())
        }
        #expect(try nothing.serializedBytes() == [])
    }

    /// Text that has to be repaired is repaired for each reader.
    @Test func malformedText() async throws {
        let shared = try Test_Scalars_Proto2_Singular(serializedBytes: [0x72, 1, 0xFF])
        try await concurrently { task in
            #expect(shared.aString == "\u{FFFD}")
            #expect(shared.withAStringUTF8Span { $0.count } == 3)
            var copy = shared
            copy.aString += "\(task)"
            #expect(copy.aString == "\u{FFFD}\(task)")
        }
    }

    /// One task decodes it, and another releases it: the last one frees it.
    @Test func passingOn() async throws {
        let bytes = try Self.message().serializedBytes()
        let stream = AsyncStream<ChatMessage> { continuation in
            Task {
                for number in 0..<500 {
                    var message = try ChatMessage(serializedBytes: bytes)
                    message.flags = Int32(number)
                    continuation.yield(message)
                }
                continuation.finish()
            }
        }
        var expected: Int32 = 0
        for await var message in stream {
            #expect(message.flags == expected)
            message.author.name += "!"
            #expect(message.author.name == "Ada!")
            expected += 1
        }
        #expect(expected == 500)
    }
}
