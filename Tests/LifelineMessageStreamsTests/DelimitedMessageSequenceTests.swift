internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineProtos
internal import Testing

@Suite struct DelimitedMessageSequenceTests {
    typealias ChatMessage = Sample_Chat_V1_ChatMessage

    @Test(arguments: [1, 5, 100, 1 << 20])
    func readsPieces(length: Int) async throws {
        let stream = try SampleStream()
        let pieces = Suspending(base: stream.bytes.cut(into: length))
        var messages: [ChatMessage] = []
        for try await message in pieces.delimitedMessages(of: ChatMessage.self) { messages.append(message) }
        #expect(messages == stream.messages)
    }

    @Test func readsBytes() async throws {
        let stream = try SampleStream()
        var messages: [ChatMessage] = []
        let bytes = Suspending(base: stream.bytes)
        for try await message in bytes.delimitedMessages(of: ChatMessage.self) { messages.append(message) }
        #expect(messages == stream.messages)
    }

    @Test func readsLongMessagesFromBytes() async throws {
        var (bytes, lengths): ([UInt8], [Int]) = ([], [0, 127, 128, 65_536, 65_537, 200_000, 1])
        for length in lengths { try bytes.append(delimited: RawMessage(bytes: [UInt8](repeating: 7, count: length))) }
        for try await message in Suspending(base: bytes).delimitedMessages(of: RawMessage.self) {
            #expect(message.byteCount == lengths.removeFirst())
        }
        #expect(lengths.isEmpty)
    }

    @Test func bytesThatAreNoLengthAreRefused() async throws {
        let bytes = Suspending(base: [0] + [UInt8](repeating: 0x80, count: 9))
        var messages = bytes.delimitedMessages(of: RawMessage.self).makeAsyncIterator()
        #expect(try await messages.next() != nil)
        let error = await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
        #expect((error?.cause as? FramingError)?.code == .malformedPrefix)
        #expect(error?.byteOffset == 1)
    }

    @Test func aMessageIsThereWithItsLastByte() async throws {
        let (bytes, continuation) = AsyncStream.makeStream(of: UInt8.self)
        for byte in [1, 42] as [UInt8] { continuation.yield(byte) }
        var messages = bytes.delimitedMessages(of: RawMessage.self).makeAsyncIterator()
        #expect(try await messages.next()?.bytes == [42])
        continuation.finish()
        #expect(try await messages.next() == nil)
        #expect(try await messages.next() == nil)
    }

    @Test func theMessagesBeforeTheOneThatFailsComeFirst() async throws {
        let pieces = Suspending(base: [[0, 0, 1, 0, 0] as [UInt8]])
        var messages = pieces.delimitedMessages(of: ChatMessage.self).makeAsyncIterator()
        #expect(try await messages.next() != nil)
        #expect(try await messages.next() != nil)
        for _ in 0..<2 {
            let error = await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
            #expect(error?.messageIndex == 2)
            #expect((error?.cause as? MessageError)?.code == .invalidTag)
        }
    }

    @Test func aStreamThatEndsInsideAMessageFails() async throws {
        var messages = Suspending(base: [[0, 5] as [UInt8]]).delimitedMessages(of: RawMessage.self).makeAsyncIterator()
        #expect(try await messages.next() != nil)
        for _ in 0..<2 {
            let error = await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
            #expect((error?.cause as? FramingError)?.code == .truncatedFrame)
        }
    }

    @Test func whatTheSequenceThrowsIsThrown() async throws {
        let pieces = Suspending(base: [[0, 5] as [UInt8]], failure: Interrupted())
        var messages = pieces.delimitedMessages(of: RawMessage.self).makeAsyncIterator()
        #expect(try await messages.next() != nil)
        await #expect(throws: Interrupted.self) { try await messages.next() }
    }

    @Test func hasTheLimitThatWasAskedFor() async throws {
        let stream = Suspending(base: [2, 0, 0] as [UInt8])
        var messages = stream.delimitedMessages(of: RawMessage.self, maximumFrameLength: 1).makeAsyncIterator()
        let error = await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
        #expect((error?.cause as? FramingError)?.code == .frameTooLarge)
    }
}
