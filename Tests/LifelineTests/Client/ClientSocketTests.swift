import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import Testing

/// The client on real sockets.
@Suite(.timeLimit(.minutes(1))) struct ClientSocketTests {
    /// Retries quickly and for ever.
    private var configuration: ClientConfiguration {
        var configuration = ClientConfiguration()
        configuration.backoff.initialDelay = .milliseconds(1)
        configuration.backoff.cap = .milliseconds(50)
        configuration.backoff.maximumAttempts = nil
        return configuration
    }

    private func withTestClient<Result>(
        to endpoint: Endpoint,
        configuration: ClientConfiguration? = nil,
        heartbeat: HeartbeatMessages<TestMessage, TestMessage>? = nil,
        _ body: nonisolated(nonsending) (TestClient) async throws -> Result
    ) async throws -> Result {
        try await withClient(
            to: endpoint,
            configuration: configuration ?? self.configuration,
            receiving: TestMessage.self,
            sending: TestMessage.self,
            heartbeat: heartbeat,
            logger: TestLog().logger,
            body
        )
    }

    @Test func outlivesItsServer() async throws {
        try await withTemporaryPath { path in
            // A server waits until its client knows of its end, even on a busy machine.
            var patient = ServerConfiguration()
            patient.connection.closeTimeout = .seconds(3_600)
            patient.shutdownGracePeriod = .seconds(3_600)
            try await withTestClient(to: .unix(path: path)) { client in
                for life in 0..<5 {
                    try await withTestServer(on: .unix(path: path), configuration: patient, handler: echo) { _ in
                        // The message is sent while the server starts, or before the client knows that it is back.
                        try await client.send(TestMessage(number: life))
                        var messages = client.messages.makeAsyncIterator()
                        #expect(try await messages.next()?.number == life)
                    }
                }
            }
        }
    }

    @Test func countsWhatAPeerThatDoesNotReadHasNotGot() async throws {
        let listener = try await RawSocket.listen()
        // No further connection is made before sending has ended.
        var configuration = configuration
        configuration.backoff.initialDelay = .seconds(3_600)
        configuration.backoff.cap = .seconds(3_600)
        try await withTestClient(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { client in
            var events = client.events.makeAsyncIterator()
            let peer = NIOLockedValueBox<RawSocket?>(try await listener.accept())
            _ = try await events.reach(.ready)
            // Together, the messages are more than the kernels' buffers hold.
            let payload = [UInt8](repeating: 7, count: 100_000)
            let sending = Task {
                var count = 0
                while (try? await client.send(TestMessage(payload), policy: .fail)) == .accepted { count += 1 }
                return count
            }
            // Messages that the peer reads have arrived.
            let frameLength = try TestMessage(payload).delimitedBytes.count
            _ = try await peer.withLockedValue { $0 }?.read(2 * frameLength)
            // The others fill the kernels' buffers until no more fits.
            try await KernelSocket.wait { $0.remotePort == listener.port && $0.isStuck }
            try peer.withLockedValue { try $0.take()?.resetWhenReleased() }
            let event = try await events.reach(.backingOff)
            #expect(event.transition.reason.code == .closedByPeer)
            let undelivered = try #require(event.undeliveredMessageCount)
            let accepted = await sending.value
            #expect((0...accepted - 2).contains(undelivered) && undelivered > 0)
        }
    }

    /// The heartbeat gives up a peer that does not answer, and keeps one that does.
    @Test(arguments: [true, false]) func asksASilentPeer(isAnswering: Bool) async throws {
        let listener = try await RawSocket.listen()
        var configuration = configuration
        configuration.connection.heartbeat.interval = .milliseconds(30)
        configuration.connection.heartbeat.timeout = .milliseconds(isAnswering ? 10_000 : 30)
        let heartbeat = HeartbeatMessages<TestMessage, TestMessage>(
            ping: { TestMessage(number: Int($0)) },
            answer: { _ in nil },
            isAnswer: { $0.number == -1 }
        )
        try await withTestClient(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration,
            heartbeat: heartbeat
        ) { client in
            var events = client.events.makeAsyncIterator()
            let peer = try await listener.accept()
            _ = try await events.reach(.ready)
            let length = try TestMessage(number: 1).delimitedBytes.count
            if isAnswering {
                for number in 1...5 {
                    #expect(try await peer.read(length) == TestMessage(number: number).delimitedBytes)
                    try await peer.write(TestMessage(number: -1).delimitedBytes)
                }
                try await peer.write(TestMessage(number: 42).delimitedBytes)
                var messages = client.messages.makeAsyncIterator()
                #expect(try await messages.next()?.number == 42)
                #expect(client.state == .ready)
            } else {
                let event = try await events.reach(.backingOff)
                #expect(event.transition.reason.code == .heartbeatTimeout)
                #expect(try await peer.read(length) == TestMessage(number: 1).delimitedBytes)
            }
        }
    }

    @Test func aPeerThatBreaksTheProtocolEndsOneConnection() async throws {
        let listener = try await RawSocket.listen()
        try await withTestClient(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { client in
            var events = client.events.makeAsyncIterator()
            let first = try await listener.accept()
            try await first.write(TestMessage(number: 1).delimitedBytes + [1, 0xFF])
            let event = try await events.reach(.backingOff)
            #expect(event.transition.reason.code == .protocolViolation)
            #expect(event.undeliveredMessageCount == 0)
            let second = try await listener.accept()
            try await second.write(TestMessage(number: 2).delimitedBytes)
            var messages = client.messages.makeAsyncIterator()
            for number in 1...2 { #expect(try await messages.next()?.number == number) }
        }
    }

    /// Half-open: the peer has ended its side but still reads. Accepted messages arrive, and the client connects again.
    @Test func aPeerThatEndsItsSideStillGetsWhatWasAccepted() async throws {
        let listener = try await RawSocket.listen()
        try await withTestClient(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { client in
            var events = client.events.makeAsyncIterator()
            let peer = try await listener.accept()
            _ = try await events.reach(.ready)
            try await client.send(TestMessage(number: 1))
            try peer.finish()
            let event = try await events.reach(.backingOff)
            #expect(event.transition.reason.code == .closedByPeer && event.transition.reason.error == nil)
            #expect(event.undeliveredMessageCount == 0)
            #expect(try await peer.read() == TestMessage(number: 1).delimitedBytes)
            let next = try await listener.accept()
            _ = try await events.reach(.ready)
            try await client.send(TestMessage(number: 2))
            let frame = try TestMessage(number: 2).delimitedBytes
            #expect(try await next.read(frame.count) == frame)
            try next.finish()
        }
    }

    @Test func closingWaitsForThePeersEndAndLosesNothing() async throws {
        let received = NIOLockedValueBox<[Int?]>([])
        var configuration = configuration
        // Long enough for a busy machine.
        configuration.connection.closeTimeout = .seconds(3_600)
        try await withTestServer { connection in
            for try await message in connection.messages { received.withLockedValue { $0.append(message.number) } }
        } _: { server in
            let last = try await withTestClient(to: server.boundEndpoint, configuration: configuration) { client in
                for number in 0..<1000 { try await client.send(TestMessage(number: number)) }
                await client.close()
                return client.history.last
            }
            #expect(last?.transition.reason.code == .drained && last?.undeliveredMessageCount == 0)
        }
        #expect(received.withLockedValue { $0 } == Array(0..<1000))
    }

    @Test func closingTellsWhenThePeerDoesNotEnd() async throws {
        let listener = try await RawSocket.listen()
        var configuration = configuration
        configuration.connection.closeTimeout = .milliseconds(50)
        let (last, peer) = try await withTestClient(
            to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
            configuration: configuration
        ) { client in
            let peer = try await listener.accept()
            try await until { client.state == .ready }
            await client.close()
            return (client.history.last, peer)
        }
        #expect(last?.transition.reason.error?.code == .closedLocally)
        #expect(try await peer.read().isEmpty)
    }

    @Test func theEndOfTheBodyJoinsACloseThatIsUnderWay() async throws {
        var configuration = configuration
        // Long enough for a busy machine.
        configuration.connection.closeTimeout = .seconds(3_600)
        let listener = try await RawSocket.listen()
        let frame = try TestMessage(number: 1).delimitedBytes
        try await withThrowingTaskGroup { group in
            let client = try await withTestClient(
                to: .tcp(host: "127.0.0.1", port: UInt16(listener.port)),
                configuration: configuration
            ) { client in
                let peer = try await listener.accept()
                try await client.send(TestMessage(number: 1))
                group.addTask { await client.close() }
                try await until { client.state == .draining }
                group.addTask {
                    // The end of the stream, not a reset.
                    #expect(try await peer.read() == frame)
                    try peer.finish()
                }
                return client
            }
            try await group.waitForAll()
            #expect(client.history.last?.transition.reason.code == .drained)
        }
    }

    @Test func throwingOutOfTheBodyCutsTheConnection() async throws {
        struct Failure: Error {}
        let listener = try await RawSocket.listen()
        await #expect(throws: Failure.self) {
            try await withTestClient(to: .tcp(host: "127.0.0.1", port: UInt16(listener.port))) { client in
                var events = client.events.makeAsyncIterator()
                _ = try await events.reach(.ready)
                throw Failure()
            } as Void
        }
        let peer = try await listener.accept()
        await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
    }

    /// A name that does not exist, and one of this machine: the state of the network does not matter for either.
    @Test func connectsToThisMachineByNameWithoutWatchingTheNetwork() async throws {
        let listener = try await RawSocket.listen()
        try await withTestClient(to: .tcp(host: "localhost", port: UInt16(listener.port))) { client in
            var events = client.events.makeAsyncIterator()
            _ = try await events.reach(.ready)
            #expect(client.history.first?.transition.to == .connecting)
        }
    }
}
