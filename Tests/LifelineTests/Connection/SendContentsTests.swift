import Lifeline
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import Testing

/// The messages that `send(contentsOf:)` gathers, and those that it does not.
@Suite(.timeLimit(.minutes(1))) struct SendContentsTests {
    /// Sizes below, at and over the limit of gathering: 16 KiB.
    private static let sizes = [1, 20_000, 2, 16_000, 16_384, 3, 16_370, 16_380, 40_000, 50_000, 4, 5]

    private static let messages = sizes.enumerated().map { TestMessage(repeatElement(UInt8($0), count: $1)) }

    @Test(
        arguments: [
            WaterMarks(low: 0, high: 0), WaterMarks(low: 10, high: 100), ConnectionConfiguration().outboundWaterMarks,
        ],
        Shape.allCases
    )
    func longMessagesKeepTheirPlaceAmongShortOnes(marks: WaterMarks, shape: Shape) async throws {
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = marks
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                async let sending: Void = {
                    try await connection.send(Self.messages, as: shape)
                    try await connection.finishSending()
                }()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                try await sending
                #expect(received == Self.messages)
            }
        }
    }

    /// After a read, the first answer is written early, so that a waiting peer can continue with it. If other
    /// connections share the loop, their tasks may run between the two.
    @Test(arguments: Shape.allCases) func theFirstIsWrittenBeforeTheLastIsSent(shape: Shape) async throws {
        let peer = Latch<RawSocket>()
        let wasWritten = Latch<Void>()
        let messages = Array(repeating: TestMessage([UInt8](repeating: 1, count: 1_000)), count: 40)
        try await withTestServer { connection in
            for try await _ in connection.messages {
                try await connection.send(messages, as: shape)
                // The loop would write sent messages by itself, but is blocked here.
                if try peer.value?.unreadByteCount != 0 { wasWritten.open(with: ()) }
            }
        } _: { server in
            let socket = try await RawSocket.connect(toPort: #require(try await server.boundEndpoint.port))
            peer.open(with: socket)
            let byteCount = try messages.reduce(0) { try $0 + $1.delimitedBytes.count }
            for _ in 0..<1_000 where wasWritten.value == nil {
                try await socket.write(TestMessage([0]).delimitedBytes)
                #expect(try await socket.read(byteCount).count == byteCount)
            }
            #expect(wasWritten.value != nil)
            try socket.reset()
        }
    }

    @Test(arguments: Shape.allCases) func nothingIsSentOfNoMessages(shape: Shape) async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await connection.send([], as: shape)
                try await connection.finishSending()
                for try await _ in connection.messages { Issue.record("nothing was sent") }
            }
        }
    }

    /// With a limit of a message that would be gathered, and of one that would not.
    @Test(arguments: [0, 1, 2, 10], [100, 30_000])
    func aMessageThatIsRefusedIsNotCounted(before count: Int, limit: Int) async throws {
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = limit
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint, configuration: configuration) { connection in
                let short = Array(repeating: TestMessage([1]), count: count)
                let messages = short + [TestMessage(repeatElement(2, count: limit + 1))] + short
                for shape in Shape.allCases {
                    let error = await #expect(throws: PartialSendError.self) {
                        try await connection.send(messages, as: shape)
                    }
                    #expect(error?.acceptedCount == count)
                    #expect((error?.cause as? ConnectionError)?.code == .messageRefused)
                }
                try await connection.finishSending()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                #expect(received == short + short)
            }
        }
    }

    @Test(arguments: [nil, 0, 1, 3]) func aSequenceThatChangesMeanwhileIsSentOnceAtMost(kept: Int?) async throws {
        // Two messages are sent together.
        let messages = (1...4).map { TestMessage(repeatElement($0, count: 7_000)) }
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await connection.send(contentsOf: Shrinking(messages, kept: kept))
                try await connection.finishSending()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                #expect(received == Array(messages.prefix(max(kept ?? 4, 2))))
            }
        }
    }

    @Test(arguments: Shape.allCases) func afterTheEndNoneIsAccepted(shape: Shape) async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await connection.finishSending()
                for messages in [[TestMessage([1])], Self.messages] {
                    let error = await #expect(throws: PartialSendError.self) {
                        try await connection.send(messages, as: shape)
                    }
                    #expect(error?.acceptedCount == 0)
                    #expect((error?.cause as? ConnectionError)?.code == .sendingFinished)
                }
            }
        }
    }

    @Test func aLoopOverMessagesGoesOnWithWhatOneOverBatchesLeaves() async throws {
        try await withTestServer { connection in
            try await connection.send(contentsOf: (0..<100).map { TestMessage(number: $0) })
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                var numbers: [Int?] = []
                while numbers.count < 100 {
                    for try await message in connection.messages {
                        numbers.append(message.number)
                        break
                    }
                    for try await batch in connection.messages.batches {
                        #expect(!batch.isEmpty)
                        numbers += batch.map(\.number)
                        break
                    }
                }
                #expect(numbers == Array(0..<100))
            }
        }
    }
}

/// Hands out some of its messages in contiguous memory, and loses others between two iterations.
private final class Shrinking: Sequence {
    private var messages: [TestMessage]
    private let kept: Int?
    private var looks = 0

    /// - Parameter kept: how many messages are left at the second iteration; nil: all, but not in contiguous memory.
    init(_ messages: [TestMessage], kept: Int?) {
        (self.messages, self.kept) = (messages, kept)
    }

    func makeIterator() -> IndexingIterator<[TestMessage]> { messages.makeIterator() }

    func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<TestMessage>) throws -> Result
    ) rethrows -> Result? {
        looks += 1
        if looks == 2 {
            guard let kept else { return nil }
            messages.removeLast(messages.count - kept)
        }
        return try messages.withUnsafeBufferPointer(body)
    }
}

/// The form in which messages are passed.
enum Shape: CaseIterable {
    /// In contiguous memory.
    case array
    /// By an iterator, one after the other.
    case sequence
}

extension Connection<TestMessage, TestMessage> {
    fileprivate func send(_ messages: [TestMessage], as shape: Shape) async throws(PartialSendError) {
        switch shape {
        case .array: try await send(contentsOf: messages)
        case .sequence: try await send(contentsOf: messages.lazy.map { $0 })
        }
    }
}
