import CLifelineMessages
import Glibc
import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import TestProtos
import Testing

/// Messages that are decoded one after another into the same memory.
@Suite struct ScopedDecodingTests {
    private static let text = "a text that is longer than fifteen bytes"

    // MARK: Reuse

    @Test func messagesHaveTheSameMemoryOneAfterAnother() throws {
        var decoder = ScopedDecoder()
        var random = SeededGenerator(seed: 1)
        // The first messages determine how much memory is needed.
        for _ in 0..<50 { _ = try decoder.withMessage(serializedBytes: random.chat().bytes, memory) }
        let first = try decoder.withMessage(serializedBytes: ChatMessage().serializedBytes(), memory)
        for _ in 0..<1_000 {
            let (message, bytes) = random.chat()
            let (used, isEqual) = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
                (memory($0), $0 == message)
            }
            #expect(isEqual)
            #expect(used == first)
            // Otherwise it could be the same by chance.
            #expect(used.blockCount == 0 && used.capacity > bytes.count)
        }
    }

    @Test func oneDecoderTakesAllTypes() throws {
        var decoder = ScopedDecoder()
        for _ in 0..<3 {
            for (name, message) in MessageCorpus.all { #expect(try decodes(message, with: &decoder), "\(name)") }
        }
    }

    private func decodes<M: Message>(_ message: M, with decoder: inout ScopedDecoder) throws -> Bool {
        let bytes = try message.serializedBytes(partial: true)
        return try decoder.withMessage(M.self, serializedBytes: bytes, partial: true) {
            try $0 == message && $0.serializedBytes(partial: true) == bytes
        }
    }

    @Test func allKindsOfBytes() throws {
        var decoder = ScopedDecoder()
        let bytes = try ChatMessage.with { $0.text = Self.text }.serializedBytes()
        func read(_ message: ChatMessage) -> String { message.text }
        #expect(try decoder.withMessage(serializedBytes: bytes, read) == Self.text)
        #expect(try decoder.withMessage(serializedBytes: bytes[...], read) == Self.text)
        #expect(try decoder.withMessage(serializedBytes: AnySequence(bytes), read) == Self.text)
        #expect(try decoder.withMessage(serializedBytes: bytes.span.bytes, read) == Self.text)
        #expect(try bytes.withUnsafeBytes { try decoder.withMessage(serializedBytes: $0, read) } == Self.text)
        #expect(try decoder.withMessage(serializedBytes: [], read) == "")
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(try decoder.withMessage(serializedBytes: nothing, read) == "")
        let inferred = try decoder.withMessage(serializedBytes: bytes) { (message: ChatMessage) in message.text.count }
        #expect(inferred == Self.text.count)
    }

    @Test func aResultMayBeNoncopyable() throws {
        struct Token: ~Copyable { var number: Int }
        var decoder = ScopedDecoder()
        let bytes = try ChatMessage.with { $0.text = Self.text }.serializedBytes()
        let token = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { Token(number: $0.text.count) }
        #expect(token.number == Self.text.count)
    }

    /// A copy that is released when the closure returns.
    @Test func memoryIsUsedAgainAfterCopiesThatEndInTime() throws {
        var decoder = ScopedDecoder()
        let bytes = try ValueSemanticsTests.sample().serializedBytes()
        // The first message determines how much memory is needed.
        _ = try decoder.withMessage(serializedBytes: bytes, memory)
        let first = try decoder.withMessage(serializedBytes: bytes, memory)
        for number in 0..<10 {
            let used = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { message in
                var copy = message
                copy.author.name = "\(number)"
                let parts = [copy.author, message.author]
                #expect(parts.map(\.name) == ["\(number)", "Ada"])
                return memory(message)
            }
            #expect(used == first)
        }
    }

    // MARK: Kept messages

    @Test func aKeptMessageStaysAsItWas() throws {
        var decoder = ScopedDecoder()
        let message = ValueSemanticsTests.sample()
        let bytes = try message.serializedBytes()
        var kept: ChatMessage?
        let first = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
            kept = $0
            return memory($0)
        }
        for count in bytes.indices { try? decoder.withMessage(serializedBytes: bytes.suffix(count), lost) }
        let second = try decoder.withMessage(serializedBytes: bytes, memory)
        #expect(second.storage != first.storage)
        #expect(kept == message)
        // Now it is the only user of its memory.
        kept?.author.name = "Bob"
        kept?.attachments.append(.with { $0.url = Self.text })
        _ = try decoder.withMessage(serializedBytes: bytes, lost)
        #expect(kept.map(memory)?.storage == first.storage)
        #expect(kept?.author.name == "Bob" && kept?.attachments.map(\.url) == ["a", "b", Self.text])
    }

    /// Bytes that may be malformed, and a message that is not read.
    private func lost(_: ChatMessage) {}

    @Test func aKeptMessageIsCopiedWhenItChangesInTheClosure() throws {
        var decoder = ScopedDecoder()
        let message = ValueSemanticsTests.sample()
        let bytes = try message.serializedBytes()
        var kept: [ChatMessage] = []
        for number in 0..<10 {
            try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
                var copy = $0
                copy.author.name = "\(number)"
                kept.append(copy)
                if number % 3 == 0 { kept.append($0) }
                copy.replyTo.text = "changed"
                #expect($0 == message)
            }
        }
        for copy in kept where copy.author.name == "Ada" { #expect(copy == message) }
        #expect(kept.filter { $0.author.name == "Ada" }.count == 4)
        #expect(kept.map(\.author.name).filter { $0 != "Ada" } == (0..<10).map { "\($0)" })
    }

    /// Kept values, and a model of them, while the decoder decodes further random messages.
    @Test(arguments: 1...4 as ClosedRange<UInt64>) func keptPartsStayAsTheyWere(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var decoder = ScopedDecoder()
        var kept: [Kept] = []
        for round in 0..<3_000 {
            let (message, bytes) = random.chat()
            let choice = Int.random(in: 0..<20, using: &random)
            try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { decoded in
                if let part = Kept(decoded, message, choice) { kept.append(part) }
            }
            if kept.isEmpty { continue }
            let index = Int.random(in: kept.indices, using: &random)
            try #require(kept[index].isAsItWas, "seed \(seed), round \(round)")
            switch Int.random(in: 0..<4, using: &random) {
            case 0: kept[index].change("\(round)")
            case 1: kept.remove(at: index)
            default: break
            }
        }
        #expect(kept.count > 50)
        for part in kept { #expect(part.isAsItWas) }
    }

    /// A part of a decoded message, and the same part of a built one.
    private enum Kept {
        case message(ChatMessage, ChatMessage)
        case author(Sample_Chat_V1_User, Sample_Chat_V1_User)
        case attachments(RepeatedField<Sample_Chat_V1_Attachment>, RepeatedField<Sample_Chat_V1_Attachment>)
        case mentions(RepeatedField<UInt64>, RepeatedField<UInt64>)
        case headers(MapField<String, String>, MapField<String, String>)
        case text(String, String)
        case reply(ChatMessage, ChatMessage)

        init?(_ decoded: ChatMessage, _ built: ChatMessage, _ choice: Int) {
            switch choice {
            case 0: self = .message(decoded, built)
            case 1: self = .author(decoded.author, built.author)
            case 2: self = .attachments(decoded.attachments, built.attachments)
            case 3: self = .mentions(decoded.mentions, built.mentions)
            case 4: self = .headers(decoded.headers, built.headers)
            case 5: self = .text(decoded.text, built.text)
            case 6: self = .reply(decoded.replyTo, built.replyTo)
            default: return nil
            }
        }

        var isAsItWas: Bool {
            switch self {
            case .message(let decoded, let built), .reply(let decoded, let built): decoded == built
            case .author(let decoded, let built): decoded == built
            case .attachments(let decoded, let built): decoded == built
            case .mentions(let decoded, let built): decoded == built
            case .headers(let decoded, let built): decoded == built
            case .text(let decoded, let built): decoded == built
            }
        }

        /// Changes both in place.
        mutating func change(_ text: String) {
            switch self {
            case .message(var decoded, var built):
                self = .text("", "")
                for change in [\ChatMessage.author.name, \.replyTo.author.name, \.text] {
                    decoded[keyPath: change] = text
                    built[keyPath: change] = text
                }
                self = .message(decoded, built)
            case .author(var decoded, var built):
                self = .text("", "")
                (decoded.name, built.name) = (text, text)
                self = .author(decoded, built)
            case .attachments(var decoded, var built):
                self = .text("", "")
                decoded.append { $0.url = text }
                built.append { $0.url = text }
                decoded[0].size += 1
                built[0].size += 1
                self = .attachments(decoded, built)
            case .mentions(var decoded, var built):
                self = .text("", "")
                decoded.append(7)
                built.append(7)
                self = .mentions(decoded, built)
            case .headers(var decoded, var built):
                self = .text("", "")
                (decoded[text], built[text]) = ("new", "new")
                self = .headers(decoded, built)
            case .text: break
            case .reply(var decoded, var built):
                self = .text("", "")
                decoded.replyTo.text = text
                built.replyTo.text = text
                self = .reply(decoded, built)
            }
        }
    }

    /// Memory that a loan of a kept message leaves is not reused by the decoder either.
    @Test func copiesThatAreMadeDuringAChangeOfAKeptMessage() throws {
        var decoder = ScopedDecoder()
        let bytes = try ValueSemanticsTests.sample().serializedBytes()
        func keepAndChange(_ user: inout Sample_Chat_V1_User, _ users: inout [Sample_Chat_V1_User]) {
            user.name = "during"
            users.append(user)
            user.name = "after"
        }
        var users: [Sample_Chat_V1_User] = []
        for _ in 0..<20 {
            var kept = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { $0 }
            keepAndChange(&kept.author, &users)
            try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
                #expect($0.author.name == "Ada")
                var copy = $0
                keepAndChange(&copy.author, &users)
                #expect(copy.author.name == "after" && $0.author.name == "Ada")
            }
            #expect(kept.author.name == "after")
        }
        #expect(users.map(\.name) == Array(repeating: "during", count: 40))
    }

    /// Not under ThreadSanitizer, which does not see reference counts: see `EscapingLoansTests`.
    @Test(.enabled(if: dlsym(nil, "__tsan_init") == nil)) func keptMessagesThatGoToOtherThreads() async throws {
        var decoder = ScopedDecoder()
        var random = SeededGenerator(seed: 5)
        for _ in 0..<50 {
            await withTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    let (message, bytes) = random.chat()
                    let decoded = try? decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { decoded in
                        if number % 2 == 0 { group.addTask { decoded == message } }
                        return decoded == message
                    }
                    #expect(decoded == true)
                }
                for await isEqual in group { #expect(isEqual) }
            }
        }
    }

    // MARK: Errors

    @Test func errorsLeaveTheDecoderUsable() throws {
        struct Refusal: Error {}
        var decoder = ScopedDecoder()
        let message = ValueSemanticsTests.sample()
        let bytes = try message.serializedBytes()
        // The first message determines how much memory is needed.
        _ = try decoder.withMessage(serializedBytes: bytes, memory)
        let first = try decoder.withMessage(serializedBytes: bytes, memory)
        let required = Test_Extending_Weight.self
        for _ in 0..<3 {
            #expect(throws: Refusal.self) {
                try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) { _ in throw Refusal() }
            }
            let truncated = #expect(throws: MessageError.self) {
                try decoder.withMessage(serializedBytes: bytes.dropLast(), lost)
            }
            #expect(truncated?.code == .truncated)
            let deep = #expect(throws: MessageError.self) {
                try decoder.withMessage(serializedBytes: bytes, options: .init(maximumDepth: 0), lost)
            }
            #expect(deep?.code == .tooDeep)
            let missing = #expect(throws: MessageError.self) {
                try decoder.withMessage(required, serializedBytes: []) { $0.grams }
            }
            #expect(missing?.code == .missingRequiredField)
            #expect(try decoder.withMessage(required, serializedBytes: [], partial: true) { $0.hasGrams } == false)
            let used = try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
                #expect($0 == message)
                return memory($0)
            }
            #expect(used == first)
        }
    }

    @Test func aKeptMessageOfAClosureThatThrows() throws {
        struct Refusal: Error {}
        var decoder = ScopedDecoder()
        let message = ValueSemanticsTests.sample()
        let bytes = try message.serializedBytes()
        var kept: [ChatMessage] = []
        for _ in 0..<5 {
            #expect(throws: Refusal.self) {
                try decoder.withMessage(ChatMessage.self, serializedBytes: bytes) {
                    kept.append($0)
                    throw Refusal()
                }
            }
        }
        #expect(kept == Array(repeating: message, count: 5))
    }

    /// The memory records whether the text of its message may be malformed.
    @Test func optionsAreThoseOfEachCall() throws {
        var decoder = ScopedDecoder()
        let malformed: [UInt8] = [0x22, 2, 0x61, 0xFF]
        #expect(try ChatMessage(serializedBytes: malformed, options: .init(validatesUTF8: false)).text == "a\u{FFFD}")
        let valid = try ChatMessage.with { $0.text = "é" }.serializedBytes()
        for _ in 0..<3 {
            let error = #expect(throws: MessageError.self) {
                try decoder.withMessage(serializedBytes: malformed, lost)
            }
            #expect(error?.code == .invalidUTF8)
            try decoder.withMessage(ChatMessage.self, serializedBytes: malformed, options: .init(validatesUTF8: false))
            {
                #expect($0.text == "a\u{FFFD}")
            }
            try decoder.withMessage(ChatMessage.self, serializedBytes: valid) {
                #expect($0.text == "é" && $0.withTextUTF8Span { $0.count } == 2)
            }
        }
    }

    @Test func theMemoryLimitHolds() throws {
        // Two bytes of input for each message.
        let bytes = [UInt8](repeating: 0, count: 100_000).flatMap { _ in [0x2A, 0] as [UInt8] }
        var decoder = ScopedDecoder()
        var count = 0
        func read(_ message: ChatMessage) { count = message.attachments.count }
        for _ in 0..<3 {
            try decoder.withMessage(serializedBytes: bytes, read)
            let options = DecodingOptions(memoryLimit: 1 << 20)
            let error = #expect(throws: MessageError.self) {
                try decoder.withMessage(serializedBytes: bytes, options: options, read)
            }
            #expect(error?.code == .memoryLimitExceeded)
            try decoder.withMessage(serializedBytes: bytes.prefix(2_000), options: options, read)
        }
        #expect(count == 1_000)
    }

    // MARK: Kept memory

    /// One message for each way to take much memory: by its input, and by the decoded content.
    @Test func memoryOfHugeMessagesIsNotKept() throws {
        var decoder = ScopedDecoder()
        let small = try ChatMessage.with { $0.text = Self.text }.serializedBytes()
        let long = try ChatMessage.with { $0.text = String(repeating: "x", count: 1 << 20) }.serializedBytes()
        let many = [UInt8](repeating: 0, count: 10_000).flatMap { _ in [0x2A, 0] as [UInt8] }
        for huge in [long, many, long, long, many, many] {
            let taken = try decoder.withMessage(serializedBytes: huge, memory)
            #expect(taken.byteCount > 512 << 10)
            for _ in 0..<3 {
                let used = try decoder.withMessage(serializedBytes: small, memory)
                #expect(used.byteCount <= 65 << 10)
            }
        }
    }

    /// Memory grows in few steps: a message that is a little larger each time does not take new memory each time.
    @Test func memoryGrowsInFewSteps() throws {
        var decoder = ScopedDecoder()
        var capacities: Set<Int> = []
        for count in 0..<3_000 {
            let bytes = try ChatMessage.with { $0.text = String(repeating: "x", count: 10 * count) }.serializedBytes()
            capacities.insert(try decoder.withMessage(serializedBytes: bytes, memory).capacity)
        }
        #expect(capacities.count < 10)
    }
}

// MARK: - Support

/// The address of a message.
private struct Memory: Equatable {
    var storage: ObjectIdentifier?
    var capacity: Int
    var byteCount: Int
    var blockCount: Int
}

private func memory(_ message: ChatMessage) -> Memory {
    let storage = message._message.untyped.storage
    let capacity = (storage?.capacity ?? 0) * 8
    return Memory(
        storage: storage.map(ObjectIdentifier.init),
        capacity: capacity,
        byteCount: message.memoryByteCount,
        blockCount: storage?.withUnsafeMutablePointerToHeader { $0.pointee.blocks == nil ? 0 : 1 } ?? 0
    )
}

extension SeededGenerator {
    /// A message of a random size with random parts, and its encoding.
    fileprivate mutating func chat() -> (message: ChatMessage, bytes: [UInt8]) {
        var message = ChatMessage()
        message.text = text()
        if Bool.random(using: &self) { message.author.name = text() }
        for _ in 0..<Int.random(in: 0..<4, using: &self) {
            let (url, size) = (text(), next())
            message.attachments.append { ($0.url, $0.size) = (url, size) }
        }
        for _ in 0..<Int.random(in: 0..<20, using: &self) { message.mentions.append(next()) }
        for _ in 0..<Int.random(in: 0..<4, using: &self) { message.headers[text()] = text() }
        if Bool.random(using: &self) { message.replyTo.text = text() }
        if Bool.random(using: &self) { message.replyTo.replyTo.author.name = text() }
        // The encoding is that of a message of the library's own initializer.
        guard let bytes = try? message.serializedBytes() else { preconditionFailure("It can be encoded") }
        return (message, bytes)
    }

    private mutating func text() -> String {
        let count = Int.random(in: 0..<(Int.random(in: 0..<8, using: &self) == 0 ? 400 : 30), using: &self)
        return String((0..<count).map { _ in Character(Unicode.Scalar(UInt8.random(in: 32..<127, using: &self))) })
    }
}
