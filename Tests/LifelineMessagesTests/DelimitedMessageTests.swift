import LifelineMessages
import LifelineWellKnownTypes
import Testing

@Suite struct DelimitedMessageTests {
    private func decode<Message: DelimitedMessage>(
        _ payloads: [[UInt8]],
        into messages: inout [Message]
    ) throws(MessageError) {
        let bytes = payloads.flatMap { $0 }
        // Not rethrown by `withUnsafeBytes` as what it is.
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
}
