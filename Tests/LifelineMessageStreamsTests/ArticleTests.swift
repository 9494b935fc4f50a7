import LifelineMessageStreams
import LifelineProtos
import LifelineTestSupport
import Testing

/// Runs the code of the article about files of messages.
@Suite struct ArticleTests {
    private let messages = ["Hello", "Goodbye"].map { text in Sample_Chat_V1_ChatMessage.with { $0.text = text } }

    @Test func files() async throws {
        var texts: [String] = []
        func print(_ text: String) { texts.append(text) }
        try await withTemporaryPath { path in
            // Replaces the article's readers and writers by those of the test's file.
            func DelimitedMessageWriter(path _: String) throws -> LifelineMessageStreams.DelimitedMessageWriter {
                try .init(path: path)
            }
            func DelimitedMessageReader(
                of type: Sample_Chat_V1_ChatMessage.Type,
                path _: String
            ) throws -> LifelineMessageStreams.DelimitedMessageReader<Sample_Chat_V1_ChatMessage> {
                try .init(of: type, path: path)
            }
            // snippet.files
            do {  // `close()` cannot consume a global variable
                var writer = try DelimitedMessageWriter(path: "messages.binpb")  // or (descriptor: STDOUT_FILENO)
                for message in messages { try writer.write(message) }
                try writer.close()
            }

            var reader = try DelimitedMessageReader(of: Sample_Chat_V1_ChatMessage.self, path: "messages.binpb")
            while let message = try reader.next() { print(message.text) }
            // snippet.end
        }
        #expect(texts == ["Hello", "Goodbye"])
    }

    @Test func sequences() async throws {
        var texts: [String] = []
        func print(_ text: String) { texts.append(text) }
        let (pieces, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        var bytes: [UInt8] = []
        for message in messages { try bytes.append(delimited: message) }
        for byte in bytes { continuation.yield([byte]) }
        continuation.finish()
        // snippet.sequences
        for try await message in pieces.delimitedMessages(of: Sample_Chat_V1_ChatMessage.self) { print(message.text) }
        // snippet.end
        #expect(texts == ["Hello", "Goodbye"])
    }
}
