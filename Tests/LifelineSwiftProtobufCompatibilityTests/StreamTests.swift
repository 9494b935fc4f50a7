internal import CompatibilityTestProtos
internal import Foundation
internal import LifelineSwiftProtobufCompatibility
internal import Testing

@Suite struct StreamTests {
    private static let messages = (0..<3).map { index in ChatMessage.with { $0.mentions = Array(0..<(100 * index)) } }

    private static func written() throws -> Data {
        let stream = OutputStream(toMemory: ())
        stream.open()
        defer { stream.close() }
        for message in messages { try BinaryDelimited.serialize(message: message, to: stream) }
        return stream.property(forKey: .dataWrittenToMemoryStreamKey) as! Data
    }

    private static func opened(_ data: Data) -> InputStream {
        let stream = InputStream(data: data)
        stream.open()
        return stream
    }

    @Test func messagesAreReadAsTheyWereWritten() throws {
        let stream = Self.opened(try Self.written())
        for message in Self.messages {
            #expect(try BinaryDelimited.parse(messageType: ChatMessage.self, from: stream) == message)
        }
        do {
            _ = try BinaryDelimited.parse(messageType: ChatMessage.self, from: stream)
            Issue.record("There are no more messages")
        } catch let error as SwiftProtobufError {
            #expect(error.code == .binaryStreamDecodingError)
        }
    }

    @Test func messagesMergeFromAStream() throws {
        let stream = Self.opened(try Self.written())
        var message = ChatMessage()
        for _ in Self.messages { try BinaryDelimited.merge(into: &message, from: stream) }
        #expect(message.mentions == Self.messages.flatMap(\.mentions))
    }

    @Test func aCutStreamIsTruncated() throws {
        for data in [Data([2, 0x0A]), Data([0x80])] {
            #expect(throws: BinaryDelimited.Error.truncated) {
                _ = try BinaryDelimited.parse(messageType: ChatMessage.self, from: Self.opened(data))
            }
        }
        #expect(throws: BinaryDecodingError.malformedProtobuf) {
            let length = Data(repeating: 0xFF, count: 10)
            _ = try BinaryDelimited.parse(messageType: ChatMessage.self, from: Self.opened(length))
        }
    }

    private struct Bytes: AsyncSequence, AsyncIteratorProtocol {
        var rest: Data

        mutating func next() async -> UInt8? { rest.popFirst() }
        func makeAsyncIterator() -> Bytes { self }
    }

    @Test func messagesAreASequence() async throws {
        let data = try Self.written()
        var read: [ChatMessage] = []
        for try await message in Bytes(rest: data).binaryProtobufDelimitedMessages(of: ChatMessage.self) {
            read.append(message)
        }
        #expect(read == Self.messages)
        let cut = AsyncMessageSequence<Bytes, ChatMessage>(base: Bytes(rest: data.dropLast()))
        await #expect(throws: BinaryDelimited.Error.truncated) { for try await _ in cut {} }
        let malformed = Bytes(rest: Data([1, 0])).binaryProtobufDelimitedMessages(of: ChatMessage.self)
        await #expect(throws: BinaryDecodingError.malformedProtobuf) { for try await _ in malformed {} }
    }
}
