internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineTestSupport
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

    /// A long piece is decoded in parts. The bytes of this one do not lie together.
    @Test func readsALongPiece() async throws {
        let stream = try SampleStream(count: 300)
        #expect(stream.bytes.count > 3 * 65_536)
        let bytes: [UInt8] = (stream.bytes + [1, 0, 0]).reversed()
        let pieces = Suspending(base: [bytes.reversed() as ReversedCollection])
        var messages = pieces.delimitedMessages(of: ChatMessage.self).makeAsyncIterator()
        for message in stream.messages { #expect(try await messages.next() == message) }
        for _ in 0..<2 {
            let error = await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
            #expect(error?.messageIndex == 300)
            #expect(error?.byteOffset == stream.bytes.count)
        }
    }

    /// Decoded at once, they would take a hundred times the memory of the piece.
    @Test func aLongPieceOfEmptyMessagesTakesLittleMemory() async {
        await #expect(processExitsWith: .success) {
            let pieces = Suspending(base: [[UInt8](repeating: 0, count: 4 << 20)])
            var messages = pieces.delimitedMessages(of: ChatMessage.self).makeAsyncIterator()
            guard let before = allocatedByteCount() else { return }
            #expect(try await messages.next() != nil)
            let after = try #require(allocatedByteCount())
            #expect(after - before < 64 << 20)
        }
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

    /// An `AsyncStream` ends when the task is cancelled, in the middle of a message here.
    @Test func aStreamThatEndsInsideAMessageByCancellationIsCancelled() async throws {
        let (pieces, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        continuation.yield([0, 5, 1])
        let task = Task { () throws in
            var messages = pieces.delimitedMessages(of: RawMessage.self).makeAsyncIterator()
            #expect(try await messages.next() != nil)
            withUnsafeCurrentTask { $0?.cancel() }
            await #expect(throws: CancellationError.self) { try await messages.next() }
            await #expect(throws: CancellationError.self) { try await messages.next() }
        }
        try await task.value
    }

    /// Its error is the stream's own.
    @Test func aDamagedMessageIsToldAlthoughTheTaskIsCancelled() async throws {
        let task = Task { () throws in
            let pieces = Suspending(base: [[0, 1, 0] as [UInt8]])
            var messages = pieces.delimitedMessages(of: ChatMessage.self).makeAsyncIterator()
            #expect(try await messages.next() != nil)
            withUnsafeCurrentTask { $0?.cancel() }
            await #expect(throws: DelimitedStreamError.self) { try await messages.next() }
        }
        try await task.value
    }

    @Test func errorsOfTheSequenceAreThrown() async throws {
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
