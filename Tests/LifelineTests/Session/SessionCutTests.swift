import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Testing

/// Two ends of a session over TCP, with a relay between them that cuts connections at any byte.
@Suite(.timeLimit(.minutes(2))) struct SessionCutTests {
    private static let messageCount = 3_000
    private static let callCount = 300

    @Test(arguments: [1, 2, 3] as [UInt64], [CuttingRelay.Cut.Kind.reset, .end])
    func nothingIsLostDoubledOrReordered(_ seed: UInt64, _ kind: CuttingRelay.Cut.Kind) async throws {
        let (pushed, called) = (Notes<Int>(), Notes<Int>())
        let service = TestService(
            .push("t.T/Push") { (message: TestMessage, _) in pushed.add(message.cutNumber) },
            .unary("t.T/Call") { (message: TestMessage, _) in
                called.add(message.cutNumber)
                return message
            },
            .stream("t.T/Stream") { (_: TestMessage, stream: SessionStreamWriter<TestMessage>, _) in
                for number in 0..<SessionCutTests.messageCount { try await stream.send(TestMessage(cutNumber: number)) }
            },
            .clientStream("t.T/Up") { (messages: SessionMessages<TestMessage>, _) in
                var count = 0
                for try await message in messages {
                    #expect(message.cutNumber == count)
                    count += 1
                }
                return TestMessage(cutNumber: count)
            },
            .bothWays("t.T/Both") {
                (messages: SessionMessages<TestMessage>, stream: SessionStreamWriter<TestMessage>, _) in
                for try await message in messages { try await stream.send(message) }
            }
        )
        try await withSessionServer(listeningOn: anyPort, services: [service], logger: TestLog().logger) { server in
            guard case .tcp(_, let port) = try await server.boundEndpoints[0].address else {
                return #expect(Bool(false))
            }
            try await CuttingRelay.run(to: Int(port), seed: seed, kind: kind, cuts: 60, after: 1...20_000) { relay in
                var configuration = SessionClientConfiguration()
                configuration.client.backoff.initialDelay = .milliseconds(1)
                configuration.client.backoff.cap = .milliseconds(5)
                configuration.client.backoff.maximumAttempts = nil
                configuration.closeTimeout = .seconds(60)
                try await withSessionClient(
                    to: .tcp(host: "127.0.0.1", port: UInt16(relay.port)),
                    configuration: configuration,
                    logger: TestLog().logger
                ) { client in
                    try await exchange(client, server)
                    var (opened, lost) = (0, 0)
                    for event in client.sessionHistory {
                        switch event.kind {
                        case .opened(_, let resumed):
                            opened += 1
                            if opened > 1 { #expect(resumed) }
                        case .lost, .refused, .expired, .ended: lost += 1
                        }
                    }
                    #expect(opened > 1)
                    #expect(lost == 0)
                }
                #expect(relay.cutCount > 20)
            }
        }
        let areInOrder = pushed.all == Array(0..<SessionCutTests.messageCount)
        #expect(areInOrder, "\(pushed.count) pushes")
        let haveBegunOnce = called.all.sorted() == Array(0..<SessionCutTests.callCount)
        #expect(haveBegunOnce, "\(called.count) calls")
    }

    /// Pushes in both directions, streams of all kinds and calls, all at the same time.
    private func exchange(_ client: SessionClient, _ server: SessionServer) async throws {
        let count = SessionCutTests.messageCount
        let news = client.pushes("t.T/News", of: TestMessage.self)
        try await withThrowingTaskGroup { group in
            group.addTask {
                for number in 0..<count { try await client.push("t.T/Push", TestMessage(cutNumber: number)) }
            }
            group.addTask {
                for number in 0..<SessionCutTests.callCount {
                    let message = TestMessage(cutNumber: number)
                    let reply = try await client.call("t.T/Call", message, returning: TestMessage.self, timeout: nil)
                    #expect(reply == message)
                }
            }
            group.addTask {
                var expected = 0
                for try await message in client.stream("t.T/Stream", TestMessage(number: 0), of: TestMessage.self) {
                    #expect(message.cutNumber == expected)
                    expected += 1
                }
                #expect(expected == count)
            }
            group.addTask {
                let reply = try await client.clientStream("t.T/Up", returning: TestMessage.self) { writer in
                    for number in 0..<count { try await writer.send(TestMessage(cutNumber: number)) }
                }
                #expect(reply.cutNumber == count)
            }
            group.addTask {
                let echoed = try await client.bothWays("t.T/Both", receiving: TestMessage.self) { writer in
                    for number in 0..<count { try await writer.send(TestMessage(cutNumber: number)) }
                } receive: { messages in
                    var expected = 0
                    for try await message in messages {
                        #expect(message.cutNumber == expected)
                        expected += 1
                    }
                    return expected
                }
                #expect(echoed == count)
            }
            group.addTask {
                try await until { !server.sessions.isEmpty }
                let session = try #require(server.sessions.first)
                for number in 0..<count { try await session.push("t.T/News", TestMessage(cutNumber: number)) }
            }
            group.addTask {
                var expected = 0
                for try await message in news {
                    #expect(message.cutNumber == expected)
                    expected += 1
                    if expected == count { break }
                }
            }
            try await group.waitForAll()
        }
        #expect(server.sessions.count == 1)
    }
}

extension TestMessage {
    /// A message with a number and a varying count of further bytes.
    fileprivate init(cutNumber number: Int) {
        self.init(Array("\(number) ".utf8) + [UInt8](repeating: 0x2E, count: number % 97))
    }

    fileprivate var cutNumber: Int {
        Int(String(decoding: payload.prefix { $0 != 0x20 }, as: UTF8.self)) ?? -1
    }
}
