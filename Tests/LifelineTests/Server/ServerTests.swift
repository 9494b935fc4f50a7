import Lifeline
import LifelineClientTestSupport
import LifelineTestSupport
import LifelineWellKnownTypes
import Logging
import NIOConcurrencyHelpers
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct ServerTests {
    @Test func aHandlerThatThrowsIsLoggedAndTheServerGoesOn() async throws {
        struct Refusal: Error {}
        let log = TestLog()
        try await withTestServer(log: log) { connection in
            for try await message in connection.messages {
                if message.payload.isEmpty { throw Refusal() }
                try await connection.send(message)
            }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { other in
                var remote: Endpoint?
                let error = await connectionError {
                    try await withTestConnection(to: server.boundEndpoint) { connection in
                        remote = connection.localEndpoint
                        _ = try await roundTrip(TestMessage(), on: connection)
                    }
                }
                #expect(error?.code == .closedByPeer, "the peer sees a reset")
                let reply = try await roundTrip(TestMessage(number: 1), on: other)
                #expect(reply?.number == 1)
                await server.shutdown(gracePeriod: .seconds(60))
                let warnings = log.entries.filter { $0.level == .warning }
                #expect(warnings.count == 1)
                #expect(warnings.first?.text.contains("Refusal") == true)
                #expect(try warnings.first?.text.contains("\(#require(remote))") == true)
            }
        }
    }

    /// Refused golden vectors and random bytes lead to a typed error for that connection, and do not affect others.
    @Test func hostilePeersHarmOnlyThemselves() async throws {
        var random = SeededGenerator(seed: 2)
        let vectors: [[UInt8]] = [
            [0x80, 0x80, 0x80, 0x80, 0x80, 0x01], [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0xFF, 0xFF, 0xFF, 0xFF, 0x1F],
            [0xFF, 0xFF, 0xFF, 0x01], [0x80], [0x05, 0x00], [0x01, 0xFF],
        ]
        let attacks = vectors + (0..<500).map { _ in random.bytes(Int.random(in: 1...200, using: &random)) }
        let failures = NIOLockedValueBox<[ConnectionError?]>([])
        let log = TestLog()
        try await withTestServer(log: log) { connection in
            do {
                for try await _ in connection.messages { try await connection.send(TestMessage(number: 1)) }
            } catch {
                failures.withLockedValue { $0.append(error as? ConnectionError) }
                throw error
            }
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { other in
                for bytes in attacks {
                    let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
                    // The server may cut the connection at any moment.
                    try? await peer.write(bytes)
                    try? peer.finish()
                    _ = try? await peer.read()
                    let reply = try await roundTrip(TestMessage(number: 1), on: other)
                    #expect(reply?.number == 1)
                }
            }
            await server.shutdown(gracePeriod: .seconds(60))
        }
        let codes = failures.withLockedValue { $0.map { $0?.code } }
        #expect(codes.count >= vectors.count)
        // The first failure may be a write to a peer that is gone.
        #expect(codes.allSatisfy { $0 == .protocolViolation || $0 == .closedByPeer })
        // The count is in a later line of the kind, or in the last one.
        let leftOut = log.entries.compactMap { entry in
            entry.text.firstMatch(of: /"left-out": (\d+)/).flatMap { Int($0.output.1) }
        }
        let written = log.entries.filter { $0.level == .warning }.count
        #expect(
            written >= 100 && written + leftOut.reduce(0, +) == codes.count,
            "each one is logged, or counted: \(written) and \(leftOut) of \(codes.count)"
        )
    }

    // MARK: The connection limit

    @Test func acceptingPausesAtTheLimit() async throws {
        var configuration = ServerConfiguration()
        configuration.maximumConnections = 2
        configuration.closesSilentConnections = false
        let log = TestLog()
        let count = Atomic(0)
        let most = Atomic(0)
        try await withTestServer(configuration: configuration, log: log) { connection in
            let open = count.add(1, ordering: .relaxed).newValue
            most.max(open, ordering: .relaxed)
            try await connection.send(TestMessage())
            for try await _ in connection.messages {}
            count.subtract(1, ordering: .relaxed)
        } _: { server in
            try await withThrowingTaskGroup { group in
                for _ in 0..<20 {
                    group.addTask {
                        // The kernel accepts at once; the handler's greeting arrives when there is room.
                        try await withTestConnection(to: server.boundEndpoint) { connection in
                            var messages = connection.messages.makeAsyncIterator()
                            let greeting = try await messages.next()
                            #expect(greeting != nil)
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(most.load(ordering: .relaxed) == 2)
        #expect(log.entries.contains { $0.text.contains("limit") && $0.level == .notice })
    }

    @Test func silentConnectionsMakeWay() async throws {
        var configuration = ServerConfiguration()
        configuration.maximumConnections = 3
        let codes = NIOLockedValueBox<[ConnectionError.Code?]>([])
        try await withTestServer(configuration: configuration) { connection in
            do {
                for try await message in connection.messages { try await connection.send(message) }
            } catch let error as ConnectionError where error.code == .overloaded {
                codes.withLockedValue { $0.append(error.code) }
            }
        } _: { server in
            let port = try #require(await server.boundEndpoint.port)
            try await withTestConnection(to: server.boundEndpoint) { speaking in
                _ = try await roundTrip(TestMessage(number: 1), on: speaking)
                var silent: [RawSocket] = []
                for _ in 0..<20 { silent.append(try await RawSocket.connect(toPort: port)) }
                for number in 2..<5 {
                    try await withTestConnection(to: server.boundEndpoint) { other in
                        let reply = try await roundTrip(TestMessage(number: number), on: other)
                        #expect(reply?.number == number)
                    }
                }
                let reply = try await roundTrip(TestMessage(number: 9), on: speaking)
                #expect(reply?.number == 9, "who has spoken has its place")
                let oldest = silent[0]
                await #expect(throws: RawSocket.Failure.self) { try await oldest.read() }
            }
        }
        #expect(codes.withLockedValue { !$0.isEmpty })
    }

    /// Each peer sends half of a message of the maximum length.
    @Test func partialFramesStayWithinTheBudget() async throws {
        var configuration = ServerConfiguration()
        configuration.connection.maximumFrameLength = 256 << 10
        configuration.memoryBudget = 1 << 20
        let overloaded = Atomic(0)
        let cut = Event()
        try await withTestServer(configuration: configuration) { connection in
            do {
                for try await message in connection.messages { try await connection.send(message) }
            } catch let error as ConnectionError where error.code == .overloaded {
                if overloaded.add(1, ordering: .relaxed).newValue == 12 { cut.signal() }
            }
        } _: { server in
            let port = try #require(await server.boundEndpoint.port)
            let half: [UInt8] = [0x80, 0x80, 0x10] + [UInt8](repeating: 0, count: 128 << 10)
            var peers: [RawSocket] = []
            for _ in 0..<20 {
                let peer = try await RawSocket.connect(toPort: port)
                try await peer.write(half)
                peers.append(peer)
            }
            try await cut.wait()
            try await withTestConnection(to: server.boundEndpoint) { other in
                let reply = try await roundTrip(TestMessage(number: 1), on: other)
                #expect(reply?.number == 1)
            }
            withExtendedLifetime(peers) {}
        }
    }

    // MARK: Shutdown

    @Test func shutdownEndsSequencesAndLetsHandlersFinish() async throws {
        let served = Event()
        // When a port that the system chose is free, another test may get it.
        let port = try TestPort.next()
        try await withTestServer(on: .tcp(host: "127.0.0.1", port: port)) { connection in
            var last: TestMessage?
            for try await message in connection.messages {
                last = message
                try await connection.send(message)
            }
            try await connection.send(TestMessage(number: (last?.number ?? 0) + 100))
            served.signal()
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                _ = try await roundTrip(TestMessage(number: 1), on: connection)
                async let shutdown: Void = server.shutdown(gracePeriod: .seconds(60))
                var messages = connection.messages.makeAsyncIterator()
                #expect(try await messages.next()?.number == 101, "the handler's last word")
                #expect(try await messages.next() == nil, "a regular end")
                try await served.wait()
                try await TestPort.waitUntilFree(port)
                let error = await connectionError { try await withTestConnection(to: server.boundEndpoint) { _ in } }
                #expect(error?.code == .connectFailed, "nobody listens any more")
                try await connection.finishSending()
                await shutdown
                try await server.waitUntilShutDown()
            }
        }
    }

    @Test func pingsAreAnsweredWhileAHandlerFinishes() async throws {
        let (ended, mayFinish) = (Event(), Event())
        let received = NIOLockedValueBox<[Int?]>([])
        let log = TestLog()
        try await withTestServer(log: log, heartbeat: .test()) { connection in
            for try await message in connection.messages {
                received.withLockedValue { $0.append(message.number) }
                try await connection.send(message)
            }
            ended.signal()
            try await mayFinish.wait()
            try await connection.send(TestMessage(number: 100))
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let first = try TestMessage(number: 1).delimitedBytes
            try await peer.write(first)
            #expect(try await peer.read(first.count) == first)
            async let shutdown: Void = server.shutdown(gracePeriod: .seconds(60))
            try await ended.wait()
            try await peer.write(["ping 1", "2", "ping 2"].flatMap { try TestMessage($0.utf8).delimitedBytes })
            let answers = try ["pong 1", "pong 2"].flatMap { try TestMessage($0.utf8).delimitedBytes }
            #expect(try await peer.read(answers.count) == answers)
            mayFinish.signal()
            #expect(try await peer.read() == TestMessage(number: 100).delimitedBytes, "and a regular end")
            try peer.finish()
            await shutdown
        }
        #expect(received.withLockedValue { $0 } == [1])
        #expect(!log.entries.contains { $0.level == .warning })
    }

    @Test func nothingIsLostWhenPeersEndFirst() async throws {
        let received = NIOLockedValueBox<[Int?]>([])
        let log = TestLog()
        var configuration = ServerConfiguration()
        configuration.shutdownOrder = .peersFirst
        try await withTestServer(configuration: configuration, log: log) { connection in
            try await connection.send(TestMessage(number: 0))
            for try await message in connection.messages { received.withLockedValue { $0.append(message.number) } }
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            let greeting = try TestMessage(number: 0).delimitedBytes
            #expect(try await peer.read(greeting.count) == greeting)
            try await peer.write(TestMessage(number: 1).delimitedBytes)
            async let shutdown: Void = server.shutdown(gracePeriod: .seconds(60))
            #expect(try await peer.read().isEmpty, "the server's end")
            try await peer.write(TestMessage(number: 2).delimitedBytes)
            try await peer.write(TestMessage(number: 3).delimitedBytes)
            try peer.finish()
            await shutdown
        }
        #expect(received.withLockedValue { $0 } == [1, 2, 3])
        #expect(!log.entries.contains { $0.level == .warning })
    }

    @Test func aClientThatSendsWithoutEndLosesNothingWhenItEndsFirst() async throws {
        let receivedCount = NIOLockedValueBox(0)
        let isBusy = Event()
        var configuration = ServerConfiguration()
        configuration.shutdownOrder = .peersFirst
        try await withTestServer(configuration: configuration) { connection in
            for try await batch in connection.messages.batches {
                receivedCount.withLockedValue { $0 += batch.count }
                isBusy.signal()
            }
        } _: { server in
            var configuration = ClientConfiguration()
            // The server has time to read, even on a slow machine.
            configuration.connection.closeTimeout = .seconds(100)
            try await withTestClient(to: server.boundEndpoint, configuration: configuration) { client in
                var events = client.events.makeAsyncIterator()
                _ = try await events.reach(.ready)
                let sending = Task {
                    let message = TestMessage(repeatElement(7, count: 1000))
                    var count = 0
                    while (try? await client.send(message, policy: .fail)) == .accepted { count += 1 }
                    return count
                }
                try await isBusy.wait()
                await server.shutdown(gracePeriod: .seconds(100))
                var undelivered: Int?
                while undelivered == nil, let event = await events.next() {
                    undelivered = event.undeliveredMessageCount
                }
                #expect(undelivered == 0)
                let acceptedCount = await sending.value
                #expect(receivedCount.withLockedValue { $0 } == acceptedCount)
            }
        }
    }

    @Test func aLaterCallCanShortenTheGracePeriod() async throws {
        let (started, ended, never) = (Event(), Event(), Event())
        try await withTestServer { connection in
            started.signal()
            for try await _ in connection.messages {}
            ended.signal()
            try await never.wait()
        } _: { server in
            let peer = try await RawSocket.connect(toPort: server.boundEndpoint.port!)
            // A connection that is not accepted yet is not served any more.
            try await started.wait()
            async let first: Void = server.shutdown(gracePeriod: .seconds(3_600))
            try await ended.wait()
            await server.shutdown(gracePeriod: .zero)
            await first
            withExtendedLifetime(peer) {}
        }
    }

    @Test func shutdownWithoutGraceCutsAndCancels() async throws {
        let (started, cancelled, never) = (Event(), Event(), Event())
        try await withTestServer { connection in
            started.signal()
            // The handler ignores the end of its messages.
            await #expect(throws: CancellationError.self) { try await never.wait() }
            cancelled.signal()
            try await connection.send(TestMessage())
        } _: { server in
            try await withTestConnection(to: server.boundEndpoint) { connection in
                try await started.wait()
                await server.shutdown(gracePeriod: .zero)
                try await cancelled.wait()
                var messages = connection.messages.makeAsyncIterator()
                let error = await connectionError { try await messages.next() }
                #expect(error?.code == .closedByPeer)
                throw CancellationError()  // No connection is left to close gracefully.
            }
        } ignoring: {
            $0 is CancellationError
        }
    }

    @Test func leavingTheBodyShutsDown() async throws {
        let started = Event()
        var configuration = ServerConfiguration()
        configuration.shutdownGracePeriod = .zero
        // When a port that the system chose is free, another test may get it.
        let port = try TestPort.next()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: port)
        try await withTestServer(on: endpoint, configuration: configuration) { connection in
            started.signal()
            for try await _ in connection.messages {}
        } _: { _ in
            let peer = try await RawSocket.connect(toPort: Int(port))
            try await started.wait()
            withExtendedLifetime(peer) {}
        }
        try await TestPort.waitUntilFree(port)
        let error = await connectionError { try await withTestConnection(to: endpoint) { _ in } }
        #expect(error?.code == .connectFailed)
    }

    @Test func cancellationShutsDown() async throws {
        let (listening, started) = (Event(), Event())
        let port = NIOLockedValueBox(0)
        let task = Task {
            try await withTestServer { connection in
                started.signal()
                for try await _ in connection.messages {}
            } _: { server in
                let endpoint = try await server.boundEndpoint
                port.withLockedValue { $0 = endpoint.port! }
                listening.signal()
                try await server.waitUntilShutDown()
            }
        }
        try await listening.wait()
        let peer = try await RawSocket.connect(toPort: port.withLockedValue { $0 })
        try await started.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        withExtendedLifetime(peer) {}
    }
}

/// A server whose body may throw the errors that `ignoring` accepts.
private func withTestServer(
    handler: @escaping @Sendable (TestConnection) async throws -> Void,
    _ body: nonisolated(nonsending) (Server) async throws -> Void,
    ignoring isExpected: (any Error) -> Bool
) async throws {
    do {
        try await withTestServer(handler: handler, body)
    } catch  where isExpected(error) {}
}
