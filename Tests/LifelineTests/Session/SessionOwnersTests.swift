import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import TestProtos
import Testing

@testable import Lifeline

/// The owner of a server ends sessions, and gets their events.
@Suite(.timeLimit(.minutes(1))) struct SessionOwnersTests {
    private var echo: SessionMethod { .unary("t.T/Echo") { (message: TestMessage, _) in message } }

    @Test(arguments: [Duration.zero, .seconds(7)])
    func aSessionIsEndedThoughItsHandlersGoOn(gracePeriod: Duration) async throws {
        let (begun, cancelled) = (Event(), Event())
        let method = SessionMethod.unary("t.T/Wait") { (message: TestMessage, _) in
            begun.signal()
            try? await Event().wait()
            cancelled.signal()
            return message
        }
        try await withServer(method) { server, clock in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Wait")
            try await begun.wait()
            let session = try #require(server.sessions.first)
            let end = clock.now + gracePeriod
            async let ended: Void = session.end(gracePeriod: gracePeriod)
            if gracePeriod > .zero {
                try await until {
                    // Acknowledgements are due before the end, so `end` may be called a little later.
                    if let next = clock.nextWakeUp, next < end { clock.advance(to: next) }
                    return clock.nextWakeUp.map { $0 >= end && $0 < end + .seconds(1) } ?? false
                }
                #expect(server.sessions.count == 1)
                clock.advance(to: end + .seconds(1))
            }
            await ended
            try await cancelled.wait()
            #expect(server.sessions.isEmpty)
            #expect(try await client.next().goodbye.code == .closed)
        }
    }

    /// If a session ends within the grace period, handlers of its pushes run to their end.
    @Test func handlersOfPushesOutliveAnEndInTime() async throws {
        let (begun, release) = (Event(), Event())
        let handled = Notes<Bool>()
        let method = SessionMethod.push("t.T/Slow") { (_: TestMessage, _) in
            begun.signal()
            try? await release.wait()
            handled.add(Task.isCancelled)
        }
        try await withServer(method) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            for _ in 1...2 { try await client.push("t.T/Slow") }
            // Both pushes have arrived.
            try await client.send(.with { $0.ping.number = 1 })
            #expect(try await client.next().pong.number == 1)
            try await begun.wait()
            let session = try #require(server.sessions.first)
            await session.end(gracePeriod: .seconds(1000))
            release.signal()
            try await until { handled.count == 2 }
        }
        #expect(handled.all == [false, false])
    }

    @Test func aSessionWithNothingToDoEndsAtOnce() async throws {
        try await withServer(echo) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            let session = try #require(server.sessions.first)
            await session.end(gracePeriod: .seconds(1000))
            #expect(server.sessions.isEmpty)
            #expect(try await client.next().goodbye.code == .closed)
        }
    }

    /// Names that a client makes up are not logged at length.
    @Test func aLongNameThatNobodyKnows() async throws {
        let log = TestLog()
        try await withServer(echo, log: log) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            // Escaped, each of these characters would take 10.
            let name = String(repeating: "\u{1F}", count: 255)
            for name in [name, name + "n"] { try await client.push(name) }
            try await client.ask("t.T/Echo")
            #expect(try await client.next().urgentResponse.serial == 1)
            #expect(server.sessions.first?.statistics.unwantedPushCount == 2)
        }
        let entries = log.entries.filter { $0.text.contains("no method for a push") }
        #expect(entries.count == 2)
        #expect(entries.allSatisfy { $0.text.count < 1_000 })
    }

    /// Callers that wait for a session that cannot begin get the reason.
    @Test func metadataThatNoServerTakes() async throws {
        var configuration = SessionClientConfiguration()
        configuration.metadata = ["token": String(repeating: "t", count: 20_000)]
        let error = await #expect(throws: SessionError.self) {
            try await withSessionClient(to: anyPort, configuration: configuration, logger: TestLog().logger) { client in
                try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self, timeout: nil)
            }
        }
        #expect((error?.cause as? ConnectionError)?.code == .invalidConfiguration)
    }

    @Test func metadataIsRenewedForEachConnection() async throws {
        struct NoToken: Error {}
        let (tokens, asked) = (Notes<String>(), Notes<Int>())
        var configuration = SessionServerConfiguration()
        configuration.authenticate = {
            tokens.add($0.metadata["token"] ?? "none")
            return nil
        }
        try await withSessionServer(
            listeningOn: anyPort,
            configuration: configuration,
            services: [TestService(echo)],
            logger: TestLog().logger
        ) { server in
            var configuration = SessionClientConfiguration()
            configuration.metadata = ["token": "0"]
            configuration.client.backoff.initialDelay = .milliseconds(1)
            configuration.renewMetadata = {
                asked.add(1)
                // The second attempt fails, and the one after it does not.
                if asked.count == 2 { throw NoToken() }
                // This token is longer than any server accepts.
                if asked.count == 3 { return ["token": String(repeating: "t", count: 20_000)] }
                return ["token": "\(asked.count)"]
            }
            try await withSessionClient(
                to: server.boundEndpoints[0],
                configuration: configuration,
                logger: TestLog().logger
            ) { client in
                _ = try await client.call("t.T/Echo", TestMessage(number: 1), returning: TestMessage.self)
                client.reconnect()
                try await until { tokens.count == 2 }
                _ = try await client.call("t.T/Echo", TestMessage(number: 2), returning: TestMessage.self)
                #expect(client.history.contains { "\($0)".contains("NoToken") })
                let openings = client.sessionHistory.map { event -> Bool? in
                    if case .opened(_, let resumed) = event.kind { resumed } else { nil }
                }
                #expect(openings == [false, true])
            }
        }
        #expect(tokens.all == ["1", "4"])
    }
}
