internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineTestSupport
internal import Testing

@Suite struct DelimitedMessageDecoderTests {
    typealias ChatMessage = Sample_Chat_V1_ChatMessage

    @Test(arguments: [1, 2, 3, 7, 64, 1000, 1 << 20])
    func findsTheMessagesHoweverTheStreamWasCut(length: Int) throws {
        let stream = try SampleStream()
        var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
        var messages: [ChatMessage] = []
        for piece in stream.bytes.cut(into: length) { messages += try decoder.decode(piece) }
        try decoder.finish()
        #expect(messages == stream.messages)
        #expect(decoder.messageCount == stream.messages.count)
        #expect(decoder.byteCount == stream.bytes.count)
    }

    /// Damage and empty pieces included: the messages, the place and the error do not depend on the pieces.
    @Test(arguments: 0..<40 as Range<UInt64>) func randomPiecesAreReadAsTheWhole(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var bytes = try SampleStream().bytes
        if seed % 2 == 1 {
            bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        if seed % 4 > 1 { bytes.removeLast(Int.random(in: 1...300, using: &random)) }
        var whole = DelimitedMessageDecoder(of: ChatMessage.self)
        var expected: [ChatMessage] = []
        let expectedError = streamError {
            try whole.decode(bytes, into: &expected)
            try whole.finish()
        }
        var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
        var messages: [ChatMessage] = []
        let error = streamError {
            for piece in bytes.cutRandomly(using: &random) { try decoder.decode(piece, into: &messages) }
            try decoder.finish()
        }
        #expect(messages == expected)
        #expect(error?.description == expectedError?.description)
        #expect(decoder.messageCount == whole.messageCount)
        #expect(decoder.byteCount == whole.byteCount)
    }

    @Test func takesBytesThatDoNotLieTogether() throws {
        let stream = try SampleStream()
        var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
        var messages = try decoder.decode(stream.bytes.lazy.map { $0 })
        #expect(messages == stream.messages)
        try decoder.decode(AnySequence(stream.bytes), into: &messages)
        #expect(messages == stream.messages + stream.messages)
    }

    @Test func handsOutBytesAsTheyAre() throws {
        var decoder = DelimitedMessageDecoder(of: RawMessage.self)
        #expect(try decoder.decode([0, 2, 0xFF, 0xFF] as [UInt8]).map(\.bytes) == [[], [0xFF, 0xFF]])
    }

    @Test func saysWhichMessageCannotBeDecodedAndWhereItIs() throws {
        let stream = try SampleStream(count: 100)
        let offsets = try stream.offsets
        for index in [0, 1, 63, 64, 65, 99] {
            // A field of number 0 in place of the message.
            let bytes = stream.bytes[..<offsets[index]] + [1, 0] + stream.bytes[offsets[index + 1]...]
            var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
            var messages: [ChatMessage] = []
            let error = #expect(throws: DelimitedStreamError.self) { try decoder.decode(bytes, into: &messages) }
            #expect(error?.messageIndex == index)
            #expect(error?.byteOffset == offsets[index])
            #expect((error?.cause as? MessageError)?.code == .invalidTag)
            #expect(messages == Array(stream.messages[..<index]))
            #expect(decoder.byteCount == offsets[index])
            // From then on it is the same error.
            let again = #expect(throws: DelimitedStreamError.self) { try decoder.decode([0], into: &messages) }
            #expect(again?.messageIndex == index)
            #expect(throws: DelimitedStreamError.self) { try decoder.finish() }
            #expect(messages.count == index)
        }
    }

    @Test func refusesAMessageOverTheLimitBeforeItHasCome() throws {
        var decoder = DelimitedMessageDecoder(of: RawMessage.self, maximumFrameLength: 5)
        #expect(try decoder.decode([5, 1, 2, 3, 4, 5] as [UInt8]).count == 1)
        let error = #expect(throws: DelimitedStreamError.self) { try decoder.decode([6] as [UInt8]) }
        #expect((error?.cause as? FramingError)?.code == .frameTooLarge)
        #expect(error?.messageIndex == 1)
        #expect(error?.byteOffset == 6)
    }

    @Test func limitsCountAsTheNearestThatAreValid() throws {
        var smallest = DelimitedMessageDecoder(of: RawMessage.self, maximumFrameLength: -1)
        #expect(try smallest.decode([0] as [UInt8]).count == 1)
        #expect(throws: DelimitedStreamError.self) { try smallest.decode([1, 0] as [UInt8]) }
        var largest = DelimitedMessageDecoder(of: RawMessage.self, maximumFrameLength: .max)
        // The beginning of a message of 2³²−1 bytes.
        #expect(try largest.decode([0xFF, 0xFF, 0xFF, 0xFF, 0x0F] as [UInt8]).isEmpty)
    }

    @Test func refusesWhatIsNoLength() {
        var decoder = DelimitedMessageDecoder(of: RawMessage.self)
        let bytes = [0] + [UInt8](repeating: 0x80, count: 6)
        let error = #expect(throws: DelimitedStreamError.self) { try decoder.decode(bytes) }
        #expect((error?.cause as? FramingError)?.code == .malformedPrefix)
        #expect(error?.byteOffset == 1)
    }

    @Test func refusesAStreamThatEndsInsideAMessage() throws {
        let stream = try SampleStream(count: 6)
        let offsets = try stream.offsets
        for length in 0..<stream.bytes.count {
            var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
            let whole = offsets.lastIndex { $0 <= length }
            #expect(try decoder.decode(stream.bytes[..<length]).count == whole)
            if offsets.contains(length) {
                try decoder.finish()
                continue
            }
            let error = #expect(throws: DelimitedStreamError.self) { try decoder.finish() }
            #expect((error?.cause as? FramingError)?.code == .truncatedFrame)
            #expect(error?.messageIndex == whole)
            #expect(error?.byteOffset == whole.map { offsets[$0] })
        }
    }

    @Test func theErrorSaysWhereAndWhy() throws {
        var decoder = DelimitedMessageDecoder(of: ChatMessage.self)
        let error = #expect(throws: DelimitedStreamError.self) { try decoder.decode([0, 0, 1, 0] as [UInt8]) }
        let cause = try #require(error?.cause)
        #expect(error?.description == "Message 2, at byte 2: \(cause)")
    }

    @Test func anAppendedMessageThatCannotBeEncodedChangesNothing() throws {
        var bytes: [UInt8] = [7]
        #expect(throws: Interrupted.self) { try bytes.append(delimited: Unencodable()) }
        #expect(bytes == [7])
    }
}

/// A message that cannot be encoded.
struct Unencodable: DelimitedMessage {
    init() {}

    init(serializedBytes: UnsafeRawBufferPointer, partial: Bool, options: DecodingOptions) throws(MessageError) {}

    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        throw Interrupted()
    }
}
