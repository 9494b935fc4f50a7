import LifelineMessages
import LifelineProtos
import LifelineTestSupport
import LifelineWellKnownTypes
import Testing

/// Harmful input of a peer leads to a message or a typed error, within the limits, and never to a trap.
@Suite(.timeLimit(.minutes(1))) struct HostileInputTests {
    private func failure(
        _ bytes: [UInt8],
        options: DecodingOptions = DecodingOptions()
    ) -> MessageError? {
        do throws(MessageError) {
            _ = try ChatMessage(serializedBytes: bytes, options: options)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Malformed

    @Test(
        arguments: [
            ("tag without value", [0x40], MessageError.Code.truncated),
            ("cut tag", [0x80], .truncated),
            ("cut varint", [0x40, 0x80], .truncated),
            ("cut fixed64", [0x61, 1, 2, 3], .truncated),
            ("cut fixed32", [0xA5, 1, 1], .truncated),
            ("cut string", [0x22, 5, 0x61], .truncated),
            ("field number 0", [0x00, 0x00], .invalidTag),
            ("wire type 6", [0x0E], .invalidTag),
            ("wire type 7", [0x0F], .invalidTag),
            ("tag of six bytes", [0xA0, 0x80, 0x80, 0x80, 0x80, 0x00], .invalidTag),
            ("tag over 32 bits", [0xF8, 0xFF, 0xFF, 0xFF, 0x1F, 0], .invalidTag),
            ("varint of eleven bytes", [0x40] + [UInt8](repeating: 0xFF, count: 10) + [1], .malformedVarint),
            ("varint over 64 bits", [0x40] + [UInt8](repeating: 0xFF, count: 9) + [2], .malformedVarint),
            ("length 2³¹", [0x22, 0x80, 0x80, 0x80, 0x80, 0x08], .truncated),
            ("length 2³²−1", [0x22, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], .truncated),
            ("length 2⁶⁴−1", [0x22] + [UInt8](repeating: 0xFF, count: 9) + [1], .truncated),
            ("packed floats of 5 bytes", [0xC2, 1, 5, 0, 0, 0, 0, 0], .invalidLength),
            ("end of no group", [0x0C], .unmatchedGroup),
            ("group of another number", [0xFB, 7, 0xF4, 7], .unmatchedGroup),
            ("group without end", [0xFB, 7, 0x08, 1], .truncated),
            ("overlong UTF-8", [0x22, 2, 0xC0, 0x80], .invalidUTF8),
            ("surrogate", [0x22, 3, 0xED, 0xA0, 0x80], .invalidUTF8),
            ("over U+10FFFF", [0x22, 4, 0xF4, 0x90, 0x80, 0x80], .invalidUTF8),
            ("cut UTF-8", [0x22, 2, 0xE2, 0x82], .invalidUTF8),
            ("bad UTF-8 in a map's key", [0x32, 3, 0x0A, 1, 0xFF], .invalidUTF8),
            ("bad UTF-8 in a repeated string", [0x82, 1, 3, 0x12, 1, 0xFF], .invalidUTF8),
        ] as [(String, [UInt8], MessageError.Code)]
    )
    func isRefused(name: String, bytes: [UInt8], code: MessageError.Code) {
        #expect(failure(bytes)?.code == code)
    }

    @Test func errorsSayWhatAndWhere() {
        #expect(
            failure([0x40, 1, 0x22, 1, 0xFF])?.description
                == "invalidUTF8: The string sample.chat.v1.ChatMessage.text (number 4) at byte 2 of a "
                + "sample.chat.v1.ChatMessage is not UTF-8. Declare it as bytes if it need not be text."
        )
        #expect(
            failure([0x52, 3, 0x12, 9, 0])?.message
                == "The input ends inside sample.chat.v1.User.name (number 2), which begins at byte 2 of a "
                + "sample.chat.v1.ChatMessage."
        )
    }

    @Test func aNULIsTextAsAnyOther() throws {
        let message = try ChatMessage(serializedBytes: [0x22, 3, 0x61, 0, 0x62] as [UInt8])
        #expect(message.text == "a\0b")
        #expect(try message.serializedBytes() == [0x22, 3, 0x61, 0, 0x62])
    }

    // MARK: Depth

    /// Messages inside each other: ChatMessage.reply_to is field 14.
    private func nested(_ depth: Int) -> [UInt8] {
        var reversed: [UInt8] = []
        for _ in 0..<depth {
            var length = reversed.count
            var prefix: [UInt8] = [0x72]
            while length >= 128 {
                prefix.append(UInt8(length % 128 + 128))
                length /= 128
            }
            prefix.append(UInt8(length))
            reversed += prefix.reversed()
        }
        return reversed.reversed()
    }

    @Test func depthIsLimited() throws {
        #expect(failure(nested(100)) == nil)
        #expect(failure(nested(101))?.code == .tooDeep)
        #expect(failure(nested(100_000))?.code == .tooDeep)
        #expect(failure(nested(3), options: DecodingOptions(maximumDepth: 3)) == nil)
        #expect(failure(nested(4), options: DecodingOptions(maximumDepth: 3))?.code == .tooDeep)
        #expect(failure(nested(1_000), options: DecodingOptions(maximumDepth: .max)) == nil)
        #expect(failure(nested(1_001), options: DecodingOptions(maximumDepth: .max))?.code == .tooDeep)
        #expect(failure(nested(1), options: DecodingOptions(maximumDepth: -1))?.code == .tooDeep)
    }

    @Test func groupsCountAsDepth() {
        func groups(_ depth: Int) -> [UInt8] {
            let start: [UInt8] = [0xFB, 7]
            let end: [UInt8] = [0xFC, 7]
            return Array([[UInt8]](repeating: start, count: depth).joined())
                + Array([[UInt8]](repeating: end, count: depth).joined())
        }
        #expect(failure(groups(100)) == nil)
        #expect(failure(groups(100_000))?.code == .tooDeep)
    }

    @Test func encodingIsLimitedToo() throws {
        // A decoded message can be encoded, however deep it is.
        let deepest = nested(1_000)
        var message = try ChatMessage(serializedBytes: deepest, options: DecodingOptions(maximumDepth: .max))
        #expect(try message.serializedBytes() == deepest)
        message = .with { $0.replyTo = message }
        let error = #expect(throws: MessageError.self) { try message.serializedBytes() }
        #expect(error?.code == .tooDeep)
        #expect(message == message)
        #expect(Set([message]).contains(message))
        #expect(message.textFormatString().contains("reply_to"))
    }

    // MARK: Cost

    @Test func manyMergesOfASubmessage() throws {
        let bytes = [[UInt8]](repeating: [0x52, 2, 0x08, 1], count: 262_144).flatMap { $0 }
        #expect(try ChatMessage(serializedBytes: bytes).author.id == 1)
    }

    @Test func manyEmptySubmessages() throws {
        let bytes = [[UInt8]](repeating: [0x2A, 0], count: 500_000).flatMap { $0 }
        #expect(
            try ChatMessage(serializedBytes: bytes, options: .init(memoryLimit: 1 << 30)).attachments.count == 500_000
        )
        #expect(failure(bytes, options: DecodingOptions(memoryLimit: 1 << 20))?.code == .memoryLimitExceeded)
    }

    @Test func theLimitIsForDecodingOnly() throws {
        var message = try ChatMessage(
            serializedBytes: [0x22, 1, 0x61] as [UInt8],
            options: DecodingOptions(memoryLimit: 0)
        )
        message.text = String(repeating: "long ", count: 100_000)
        message.attachments = .init(repeating: .with { $0.url = "url" }, count: 1_000)
        #expect(message.text.utf8.count == 500_000)
        #expect(message.attachments.count == 1_000)
    }

    @Test func manyEntriesOfAMap() throws {
        let same = [[UInt8]](repeating: [0x32, 6, 0x0A, 1, 0x61, 0x12, 1, 0x62], count: 200_000).flatMap { $0 }
        #expect(try ChatMessage(serializedBytes: same).headers == ["a": "b"])
        var descending: [UInt8] = []
        for key in (0..<100_000).reversed() {
            let digits = Array("\(1_000_000 + key)".utf8)
            descending += [0x32, UInt8(digits.count + 2), 0x0A, UInt8(digits.count)] + digits
        }
        let message = try ChatMessage(serializedBytes: descending, options: DecodingOptions(memoryLimit: 1 << 28))
        #expect(message.headers.count == 100_000)
        #expect(message.headers["1050000"] == "")
        // Merges of a submessage that has a map: one entry each.
        var merges: [UInt8] = []
        for key in 0..<100_000 {
            merges += [0x72, 7, 0x32, 5, 0x0A, 3]
            merges += [UInt8(key % 100 + 1), UInt8(key / 100 % 100 + 1), UInt8(key / 10_000 + 1)]
        }
        let merged = try ChatMessage(serializedBytes: merges, options: DecodingOptions(memoryLimit: 1 << 28))
        #expect(merged.replyTo.headers.count == 100_000)
    }

    // MARK: Random

    @Test func everyTruncationIsAMessageOrAnError() throws {
        let bytes = try Self.rich().serializedBytes()
        for count in 0..<bytes.count { try decodeAndCheck(Array(bytes.prefix(count))) }
    }

    @Test func randomAndMutatedBytes() throws {
        var generator = SeededGenerator(seed: 99)
        let bytes = try Self.rich().serializedBytes()
        var decodedCount = 0
        for _ in 0..<20_000 {
            let random = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            try decodeAndCheck(random)
            var mutated = bytes
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let position = Int.random(in: 0..<mutated.count, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: mutated[position] = UInt8.random(in: 0...255, using: &generator)
                case 1: mutated.remove(at: position)
                default: mutated.insert(UInt8.random(in: 0...255, using: &generator), at: position)
                }
            }
            if try decodeAndCheck(mutated) { decodedCount += 1 }
        }
        #expect(decodedCount > 1_000, "enough of them get past the decoder")
    }

    /// Decodes. A resulting message has to survive encoding and changes. Returns whether there is one.
    @discardableResult
    private func decodeAndCheck(_ bytes: [UInt8]) throws -> Bool {
        guard var message = try? ChatMessage(serializedBytes: bytes) else { return false }
        let encoded = try message.serializedBytes()
        let again = try ChatMessage(serializedBytes: encoded)
        #expect(again == message, "\(bytes)")
        #expect(try again.serializedBytes() == encoded)
        message.text += "x"
        message.author.name += "y"
        message.headers["z"] = message.sticker
        message.attachments.append(.with { $0.content = message.voice })
        #expect(again != message)
        return true
    }

    static func rich() -> ChatMessage {
        var message = ValueSemanticsTests.sample()
        message.poll = .with {
            $0.question = "?"
            $0.choices = ["ä", "b"]
            $0.votes = [1: 2, 3: 4]
        }
        message.signal = [1, 2]
        message.kindsSeen = [.text, .system]
        message.reactions = ["👍": 3]
        message.ttl = 9
        message.sentAt = .with { $0.nanos = 5 }
        return message
    }
}
