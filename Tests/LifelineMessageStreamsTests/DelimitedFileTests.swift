internal import Glibc
internal import LifelineCore
internal import LifelineMessageStreams
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineTestSupport
internal import Testing

@Suite struct DelimitedFileTests {
    typealias ChatMessage = Sample_Chat_V1_ChatMessage

    private func write(_ messages: [ChatMessage], to path: String, appending: Bool = false) throws {
        var writer = try DelimitedMessageWriter(path: path, appending: appending)
        for message in messages { try writer.write(message) }
        #expect(writer.messageCount == messages.count)
        try writer.close()
    }

    private func read(_ path: String) throws -> [ChatMessage] {
        var reader = try DelimitedMessageReader(of: ChatMessage.self, path: path)
        var messages: [ChatMessage] = []
        while let message = try reader.next() { messages.append(message) }
        #expect(try reader.next() == nil)
        return messages
    }

    /// Some messages span the pieces in which files are read and written.
    @Test func readsWhatWasWritten() async throws {
        try await withTemporaryPath("messages") { path in
            let stream = try SampleStream(count: 300)
            #expect(stream.bytes.count > 3 * 65_536)
            try write(stream.messages, to: path)
            #expect(try read(path) == stream.messages)
            // Writing again begins anew, and appending does not.
            try write(Array(stream.messages[..<10]), to: path)
            try write(Array(stream.messages[10...]), to: path, appending: true)
            #expect(try read(path) == stream.messages)
        }
    }

    @Test func readsBatches() async throws {
        try await withTemporaryPath("messages") { path in
            let stream = try SampleStream(count: 300)
            try write(stream.messages, to: path)
            var reader = try DelimitedMessageReader(of: ChatMessage.self, path: path)
            var messages: [ChatMessage] = []
            messages.append(try #require(try reader.next()))
            var batchCount = 0
            while let batch = try reader.nextBatch() {
                #expect(!batch.isEmpty)
                messages += batch
                batchCount += 1
            }
            #expect(messages == stream.messages)
            #expect(batchCount > 3)
            #expect(try reader.nextBatch() == nil)
        }
    }

    @Test func aMessageMayBeLongerThanAReadOrAWrite() async throws {
        try await withTemporaryPath("long") { path in
            let messages = [3, 200_000, 0, 65_536, 65_533].map { length in
                ChatMessage.with { $0.text = String(repeating: "x", count: length) }
            }
            try write(messages, to: path)
            #expect(try read(path) == messages)
        }
    }

    @Test func theReaderHasTheLimitsThatWereAskedFor() async throws {
        try await withTemporaryPath("limited") { path in
            writeFile([2, 0, 0, 3, 0, 0, 0], to: path)
            let options = DecodingOptions(maximumDepth: 7)
            var reader = try DelimitedMessageReader(
                of: Decoding.self,
                path: path,
                maximumFrameLength: 2,
                partial: true,
                options: options
            )
            #expect(try reader.next() == Decoding(partial: true, options: options))
            let error = streamError { _ = try reader.next() }
            #expect((error?.cause as? FramingError)?.code == .frameTooLarge)
            let descriptor = open(path, O_RDONLY)
            defer { close(descriptor) }
            var other = DelimitedMessageReader(of: Decoding.self, descriptor: descriptor, maximumFrameLength: 3)
            #expect(try other.next() == Decoding(partial: false, options: DecodingOptions()))
            #expect(try other.next() != nil)
        }
    }

    /// A copy would take as much memory again.
    @Test func changingAMessageDoesNotCopyIt() async {
        await #expect(processExitsWith: .success) {
            try await withTemporaryPath("long") { path in
                var writer = try DelimitedMessageWriter(path: path)
                let long = ChatMessage.with { $0.text = String(repeating: "x", count: 1 << 20) }
                for _ in 0..<2 { try writer.write(long) }
                try writer.close()
                var reader = try DelimitedMessageReader(of: ChatMessage.self, path: path)
                var message = try #require(try reader.next())
                guard let before = allocatedByteCount() else { return }
                message.id = "1"
                let after = try #require(allocatedByteCount())
                #expect(after - before < 1 << 19)
            }
        }
    }

    @Test func anEmptyFileHasNoMessages() async throws {
        try await withTemporaryPath("empty") { path in
            writeFile([], to: path)
            let messages = try read(path)
            #expect(messages == [])
        }
    }

    @Test func theMessagesBeforeTheOneThatFailsComeFirst() async throws {
        try await withTemporaryPath("damaged") { path in
            let stream = try SampleStream(count: 3)
            writeFile(stream.bytes + [1, 0, 0], to: path)
            var reader = try DelimitedMessageReader(of: ChatMessage.self, path: path)
            #expect(try reader.nextBatch() == stream.messages)
            for _ in 0..<2 {
                do throws(DelimitedStreamError) {
                    _ = try reader.next()
                    Issue.record("A field of number 0 was taken.")
                } catch {
                    #expect(error.messageIndex == 3)
                    #expect(error.byteOffset == stream.bytes.count)
                    #expect((error.cause as? MessageError)?.code == .invalidTag)
                }
            }
        }
    }

    @Test func aFileThatEndsInsideAMessageFails() async throws {
        try await withTemporaryPath("cut") { path in
            writeFile([0, 5, 1], to: path)
            var reader = try DelimitedMessageReader(of: RawMessage.self, path: path)
            #expect(try reader.next() != nil)
            for _ in 0..<2 {
                do throws(DelimitedStreamError) {
                    _ = try reader.nextBatch()
                    Issue.record("A message that is not whole was taken.")
                } catch {
                    #expect((error.cause as? FramingError)?.code == .truncatedFrame)
                    #expect(error.byteOffset == 1)
                }
            }
        }
    }

    @Test func aPipeHandsOutWhatHasCome() throws {
        var ends: [CInt] = [0, 0]
        #expect(pipe(&ends) == 0)
        var writer = DelimitedMessageWriter(descriptor: ends[1])
        var reader = DelimitedMessageReader(of: RawMessage.self, descriptor: ends[0])
        for number in 0..<3 as Range<UInt8> {
            try writer.write(RawMessage(bytes: [number]))
            try writer.flush()
            #expect(try reader.next()?.bytes == [number])
        }
        try writer.close()
        // The writer must not close the descriptor.
        #expect(close(ends[1]) == 0)
        #expect(try reader.next() == nil)
        #expect(close(ends[0]) == 0)
    }

    @Test func aWriterThatWasNotClosedWritesWhatItCan() async throws {
        try await withTemporaryPath("left") { path in
            do {
                var writer = try DelimitedMessageWriter(path: path)
                try writer.write(RawMessage(bytes: []))
            }
            #expect(try read(path) == [ChatMessage()])
        }
    }

    @Test func filesThatCannotBeOpenedAreNamed() async throws {
        try await withTemporaryPath("missing") { path in
            do throws(FileError) {
                _ = try DelimitedMessageReader(of: RawMessage.self, path: path)
                Issue.record("There is no such file.")
            } catch {
                #expect(error.number == ENOENT)
                #expect(error.description == "Cannot open \(path): No such file or directory.")
            }
            do throws(FileError) {
                _ = try DelimitedMessageWriter(path: "\(path)/messages")
                Issue.record("There is no such folder.")
            } catch {
                #expect(error.number == ENOENT)
            }
        }
    }

    @Test func aMessageThatCannotBeWrittenChangesNothing() async throws {
        try await withTemporaryPath("refused") { path in
            var writer = try DelimitedMessageWriter(path: path, maximumFrameLength: 2)
            try writer.write(RawMessage(bytes: []))
            do throws(DelimitedStreamError) {
                try writer.write(RawMessage(bytes: [1, 2, 3]))
                Issue.record("A message over the limit was taken.")
            } catch {
                #expect((error.cause as? FramingError)?.code == .payloadTooLarge)
                #expect(error.messageIndex == 1)
                #expect(error.byteOffset == 1)
            }
            do throws(DelimitedStreamError) {
                try writer.write(Unencodable())
                Issue.record("A message that cannot be encoded was taken.")
            } catch {
                #expect(error.cause is Interrupted)
            }
            try writer.close()
            #expect(try read(path) == [ChatMessage()])
        }
    }
}

/// The options of its decoding.
private struct Decoding: DelimitedMessage, Equatable {
    let partial: Bool
    let options: DecodingOptions

    init(partial: Bool, options: DecodingOptions) { (self.partial, self.options) = (partial, options) }

    init(serializedBytes: UnsafeRawBufferPointer, partial: Bool, options: DecodingOptions) {
        self.init(partial: partial, options: options)
    }

    func withDelimitedBytes<Result>(
        partial: Bool,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        throw Interrupted()
    }
}
