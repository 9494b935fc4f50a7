import LifelineWellKnownTypes
import Testing

@testable import LifelineMessages

@Suite struct DelimitedMessageTests {
    private func decode<Message: DelimitedMessage>(
        _ payloads: [[UInt8]],
        into messages: inout [Message]
    ) throws(MessageError) {
        let bytes = payloads.flatMap { $0 }
        // `withUnsafeBytes` does not rethrow the typed error.
        let result = bytes.withUnsafeBytes { bytes in
            var start = 0
            let slices = payloads.map { payload in
                defer { start += payload.count }
                return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + payload.count)])
            }
            return slices.withUnsafeBufferPointer { slices in
                Result { () throws(MessageError) in
                    try Message.decode(slices, into: &messages, partial: false, options: DecodingOptions())
                }
            }
        }
        try result.get()
    }

    @Test func aRunOfPayloadsIsAdded() throws {
        var messages = [Google_Protobuf_Int32Value(7)]
        try decode([[8, 1], [], [8, 3]], into: &messages)
        #expect(messages.map(\.value) == [7, 1, 0, 3])
        try decode([], into: &messages)
        #expect(messages.count == 4)
    }

    @Test func thoseBeforeOneThatCannotBeDecodedAreAdded() {
        var messages: [Google_Protobuf_Int32Value] = []
        let error = #expect(throws: MessageError.self) {
            try decode([[8, 1], [8, 2], [8], [8, 4]], into: &messages)
        }
        #expect(error?.code == .truncated)
        #expect(messages.map(\.value) == [1, 2])
    }

    @Test func rawMessagesStayAsTheyAre() throws {
        var messages: [RawMessage] = []
        try decode([[8], [], [1, 2, 3]], into: &messages)
        #expect(messages.map(\.bytes) == [[8], [], [1, 2, 3]])
    }

    /// Short and long messages, more than share memory. Their content counts, not their position in it.
    @Test func rawMessagesThatShareMemoryAreEachTheirOwn() throws {
        let payloads = [0, 1, 100, 1_023, 1_024, 5_000, 7, 900, 900, 900, 900, 900, 900, 1, 1, 100].enumerated()
            .map { [UInt8](repeating: UInt8($0 % 13), count: $1) }
        var messages: [RawMessage] = []
        try decode(payloads, into: &messages)
        #expect(messages.map(\.bytes) == payloads)
        #expect(messages.map(\.byteCount) == payloads.map(\.count))
        #expect(messages.map { $0.withUnsafeBytes { Array($0) } } == payloads)
        #expect(messages.map { $0.encodedPayload() } == payloads)
        #expect(messages == payloads.map(RawMessage.init))
        #expect(messages.map(\.hashValue) == payloads.map { RawMessage(bytes: $0).hashValue })
        #expect(messages[13] != messages[14])
        for (message, payload) in zip(messages, payloads) {
            let frame = try message.withDelimitedBytes { Array($0) }
            #expect(try frame == RawMessage(bytes: payload).withDelimitedBytes { Array($0) })
            #expect(Array(frame.suffix(payload.count)) == payload)
        }
    }

    /// Adjacent except for a possible prefix, far apart, in another order, and one twice.
    @Test func rawMessagesAreFoundWhereverTheyLie() throws {
        let bytes = [UInt8](0...99)
        let ranges = [
            0..<3, 4..<4, 5..<9, 14..<20, 26..<30, 35..<35, 36..<40, 10..<12, 10..<12, 11..<60, 60..<61, 99..<100,
        ]
        var messages: [RawMessage] = []
        try bytes.withUnsafeBytes { bytes in
            let payloads =
                ranges.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) } + [
                    UnsafeRawBufferPointer(start: nil, count: 0)
                ]
            try payloads.withUnsafeBufferPointer {
                try RawMessage.decode($0, into: &messages, partial: false, options: DecodingOptions())
            }
        }
        #expect(messages.map(\.bytes) == ranges.map { Array(bytes[$0]) } + [[]])
        let blocks = messages.map { ObjectIdentifier($0.block) }
        // The gap before the fifth is longer than any prefix.
        #expect(Set(blocks[0...3]).count == 1 && blocks[3] != blocks[4] && blocks[4] == blocks[6])
    }

    /// Keeping one of many messages keeps little memory of the others.
    @Test func rawMessagesShareLittleMemory() throws {
        var messages: [RawMessage] = []
        try decode((0..<200).map { [UInt8](repeating: 1, count: $0 % 3 == 0 ? 700 + 2 * $0 : 50) }, into: &messages)
        for message in messages {
            #expect(message.block.bytes.count <= 4096)
            if message.byteCount >= 1024 { #expect(message.block.bytes.count == message.byteCount) }
        }
        #expect(Set(messages.map { ObjectIdentifier($0.block) }).count < 110)
    }

    @Test func sharedMemoryLastsAsLongAsOneOfThem() throws {
        var messages: [RawMessage] = []
        try decode([[1], [2, 2], [3], [UInt8](repeating: 4, count: 2_000)], into: &messages)
        weak let shared = messages[0].block
        weak let long = messages[3].block
        var second: RawMessage? = messages[1]
        messages = []
        #expect(long == nil)
        #expect(second?.bytes == [2, 2])
        #expect(shared != nil)
        second = nil
        #expect(shared == nil)
    }

    /// For messages in contiguous memory, as in a batch, which need not be retained separately.
    @Test func aMessageInMemoryIsWrittenAsItIsByItself() throws {
        var raw: [RawMessage] = []
        try decode([[1], [], [UInt8](repeating: 4, count: 200)], into: &raw)
        try expectSameFrames(of: raw)
        try expectSameFrames(of: [.with { $0.value = 5 }, Google_Protobuf_Int32Value()])
    }

    private func expectSameFrames<Message: DelimitedMessage>(of messages: [Message]) throws {
        let frames = try messages.withUnsafeBufferPointer { messages in
            try messages.indices.map {
                try Message.withDelimitedBytes(of: messages.baseAddress! + $0, partial: false) { Array($0) }
            }
        }
        #expect(try frames == messages.map { try $0.withDelimitedBytes(partial: false) { Array($0) } })
    }

    @Test func changingARawMessageChangesNoOther() throws {
        var messages: [RawMessage] = []
        try decode([[1, 2], [3], [4, 5]], into: &messages)
        messages[1].bytes.append(9)
        messages[1].bytes[0] = 8
        #expect(messages.map(\.bytes) == [[1, 2], [8, 9], [4, 5]])
        messages[0].bytes = []
        #expect(messages.map(\.bytes) == [[], [8, 9], [4, 5]])
    }

    /// For a type without its own implementation for bodies without length.
    @Test(arguments: [0, 1, 127, 128, 20_000]) func thePayloadIsWhatStandsBehindTheLength(count: Int) throws {
        let bytes = [UInt8](repeating: 7, count: count)
        #expect(try Delimited(message: RawMessage(bytes: bytes)).encodedPayload(partial: false) == bytes)
    }

    private struct Delimited: DelimitedMessage {
        let message: RawMessage

        init(message: RawMessage) { self.message = message }

        init(
            serializedBytes: UnsafeRawBufferPointer,
            partial: Bool,
            options: DecodingOptions
        ) throws(MessageError) {
            message = try RawMessage(serializedBytes: serializedBytes)
        }

        func withDelimitedBytes<Result>(
            partial: Bool,
            _ body: (UnsafeRawBufferPointer) throws -> Result
        ) throws -> Result {
            try message.withDelimitedBytes(partial: partial, body)
        }
    }
}
