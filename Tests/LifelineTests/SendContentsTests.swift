import Lifeline
import LifelineTestSupport
import Testing

/// What `send(contentsOf:)` gathers, and what it does not.
@Suite(.timeLimit(.minutes(1))) struct SendContentsTests {
    /// Below, at and over what is gathered: 16 KiB.
    private static let sizes = [1, 20_000, 2, 16_000, 16_384, 3, 16_370, 16_380, 40_000, 50_000, 4, 5]

    private static let messages = sizes.enumerated().map { TestMessage(repeatElement(UInt8($0), count: $1)) }

    @Test(arguments: [
        WaterMarks(low: 0, high: 0), WaterMarks(low: 10, high: 100), ConnectionConfiguration().outboundWaterMarks,
    ])
    func longMessagesKeepTheirPlaceAmongShortOnes(marks: WaterMarks) async throws {
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = marks
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.endpoint, configuration: configuration) { connection in
                async let sending: Void = {
                    try await connection.send(contentsOf: Self.messages)
                    try await connection.finishSending()
                }()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                try await sending
                #expect(received == Self.messages)
            }
        }
    }

    @Test func nothingIsSentOfNoMessages() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.endpoint) { connection in
                try await connection.send(contentsOf: [])
                try await connection.finishSending()
                for try await _ in connection.messages { Issue.record("nothing was sent") }
            }
        }
    }

    @Test(arguments: [0, 1, 2, 10])
    func aLongMessageThatIsRefusedIsNotCounted(before count: Int) async throws {
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = 30_000
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.endpoint, configuration: configuration) { connection in
                let short = Array(repeating: TestMessage([1]), count: count)
                let error = await #expect(throws: PartialSendError.self) {
                    try await connection.send(
                        contentsOf: short + [TestMessage(repeatElement(2, count: 30_001))] + short
                    )
                }
                #expect(error?.acceptedCount == count)
                try await connection.finishSending()
                var received: [TestMessage] = []
                for try await message in connection.messages { received.append(message) }
                #expect(received == short)
            }
        }
    }

    @Test func afterTheEndNoneIsAccepted() async throws {
        try await withTestServer(handler: echo) { server in
            try await withTestConnection(to: server.endpoint) { connection in
                try await connection.finishSending()
                for messages in [[TestMessage([1])], Self.messages] {
                    let error = await #expect(throws: PartialSendError.self) {
                        try await connection.send(contentsOf: messages)
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
            try await withTestConnection(to: server.endpoint) { connection in
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
