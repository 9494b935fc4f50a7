import LifelineClientTestSupport
import LifelineCore
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

// The limits of a server, and its goodbyes when there is no room.
extension SessionServerTests {
    @Test func sessionsThatWereNeverUsedMakeWay() async throws {
        try await withServer(echo, configure: { $0.maximumSessionCount = 1 }) { server, clock in
            // The client sends a hello, and leaves.
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            let unused = try #require(server.sessions.first)
            try first.socket.reset()
            let end = clock.now + .seconds(120)
            try await until { clock.nextWakeUp == end }
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await second.hello().welcome.sessionID != welcome.sessionID)
            #expect(unused.engine.endReason.map { SessionError($0).code } == .expired)
            // Used sessions make way, too: first the oldest of the client's own address.
            try await second.ask("t.T/Echo")
            #expect(try await second.next().urgentResponse.serial == 1)
            try second.socket.reset()
            try await until { server.state.withLockedValue { $0.connections.isEmpty } }
            let used = try #require(server.sessions.first)
            let third = try await RawSessionClient.connect(to: server)
            #expect(try await !third.hello().welcome.sessionID.isEmpty)
            #expect(used.engine.endReason.map { SessionError($0).code } == .expired)
            // A session with a connection does not make way.
            let fourth = try await RawSessionClient.connect(to: server)
            #expect(try await fourth.hello().goodbye.code == .full)
        }
    }

    @Test func requestsThatAreTooManyAreRefusedAndCounted() async throws {
        let (begun, release) = (Event(), Event())
        let slow = SessionMethod.unary("t.T/Slow") { (message: TestMessage, _) in
            begun.signal()
            try await release.wait()
            return message
        }
        try await withServer(slow, configure: { $0.limits.maximumHandlerCount = 1 }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            let session = try #require(server.sessions.first)
            for serial: UInt32 in 1...3 { try await client.ask("t.T/Slow", serial: serial) }
            try await begun.wait()
            for serial: UInt32 in 2...3 {
                let response = try await client.next().urgentResponse
                #expect((response.serial, response.status) == (serial, SessionStatus.Code.resourceExhausted.rawValue))
            }
            #expect(session.statistics.refusedRequestCount == 2)
            release.signal()
            let response = try await client.next().urgentResponse
            #expect((response.serial, response.status) == (1, 0))
            #expect(session.statistics.refusedRequestCount == 2)
        }
    }

    @Test func aClientThatReadsNoResponsesGetsNoEndOfThem() async throws {
        let large = SessionMethod.unary("t.T/Large") { (_: TestMessage, _) in
            TestMessage([UInt8](repeating: 7, count: 2_500))
        }
        // 4 KiB for kept messages, and half as much more for responses.
        try await withServer(large, configure: { $0.limits.maximumKeptByteCount = 4_096 }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello { $0.terms.windowFrames = 1 }
            let session = try #require(server.sessions.first)
            for serial: UInt32 in 1...10 { try await client.ask("t.T/Large", serial: serial) }
            try await until { session.statistics.keptMessageCount == 10 }
            // One response has room, one exceeds the limit; the others were replaced by short ones.
            let kept = session.statistics.keptByteCount
            #expect(kept > 5_000 && kept < 8_000)
            var statuses: [UInt32] = []
            for place: UInt64 in 1...10 {
                statuses.append(try await client.next().urgentResponse.status)
                #expect(client.urgentCount == place)
                try await client.acknowledge(urgent: place)
            }
            #expect(statuses.count { $0 == 0 } == 2)
            #expect(statuses.count { $0 == SessionStatus.Code.resourceExhausted.rawValue } == 8)
        }
    }

    // MARK: Connections in memory

    /// A connection to a server that has room for 1,000 bytes, and its client's end.
    private func connect() async throws -> (OpenedConnection<SessionServerIntake>, ScriptedSessionServer) {
        let transport = ScriptedTransport()
        var configuration = ConnectionConfiguration()
        configuration.outboundWaterMarks = WaterMarks(low: 500, high: 1_000)
        let options = configuration.transportOptions(
            maximumFrameLength: configuration.maximumFrameLength,
            hasHeartbeat: false,
            metrics: TransportMetrics(role: "test")
        )
        async let opened = transport.connect(to: .unix(path: "/scripted"), options: options) {
            SessionReceiver(SessionServerIntake())
        }
        let peer = try await transport.nextAttempt().accept()
        let names = NIOLockedValueBox(ScriptedSessionServer.MethodNames())
        return (try await opened, ScriptedSessionServer(peer: peer, names: names))
    }

    private func hello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) -> Lifeline_Session_V1_Frame {
        .hello(populate)
    }

    private func expectPushes(_ count: Int, from client: ScriptedSessionServer) async throws {
        for _ in 0..<count { #expect(try await client.next().push.method == 1) }
    }

    @Test func aHelloWhoseClientHasLeft() async throws {
        let asked = Notes<Int>()
        try await withServer(
            echo,
            configure: {
                $0.authenticate = { _ in
                    asked.add(1)
                    return nil
                }
            },
            { server, _ in
                let (opened, client) = try await connect()
                try client.send(hello())
                client.peer.finish()
                await server.serve(opened)
                #expect(server.sessions.isEmpty && asked.count <= 1)
                #expect(client.peer.read().isEmpty, "nobody is welcomed")
            }
        )
    }

    @Test(arguments: [false, true]) func theGoodbyeWaitsForRoomBehindOtherFrames(isReplaced: Bool) async throws {
        try await withServer(echo) { server, _ in
            let (opened, client) = try await connect()
            let serving = Task { await server.serve(opened) }
            try client.send(hello())
            let welcome = try await client.next().welcome
            let session = try #require(server.sessions.first)
            // The second push waits to be sent, and the third waits behind it.
            for _ in 1...3 { try await session.push("t.T/News", TestMessage([UInt8](repeating: 1, count: 2_000))) }
            if isReplaced {
                let (other, second) = try await connect()
                let both = Task { await server.serve(other) }
                try second.send(
                    hello {
                        ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, 2)
                    }
                )
                #expect(try await second.next().welcome.resumed)
                try await expectPushes(2, from: client)
                #expect(try await client.next().goodbye.code == .replaced)
                second.peer.close(nil)
                await both.value
            } else {
                // A method number that was not assigned.
                try client.send(.with { $0.push.method = 1 })
                try await expectPushes(2, from: client)
                #expect(try await client.next().goodbye.code == .violation)
            }
            client.peer.close(nil)
            await serving.value
        }
    }

    @Test func aClientThatComesBackToAServerThatGoesAwayIsTold() async throws {
        try await withServer(echo) { server, _ in
            let (opened, client) = try await connect()
            let over = Latch<Void>()
            let serving = Task { await server.serve(opened) { over.open(with: ()) } }
            try client.send(hello())
            let welcome = try await client.next().welcome
            client.peer.close(nil)
            await serving.value
            await over.waitUninterrupted()
            let (other, second) = try await connect()
            let servingAgain = Task { await server.serve(other) }
            try await until { server.state.withLockedValue { $0.connections.count == 1 } }
            let down = Task { await server.shutdown(gracePeriod: .seconds(100)) }
            try await until { server.state.withLockedValue { $0.registry.isDraining } }
            try second.send(hello { ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, 2) })
            #expect(try await second.next().welcome.resumed)
            #expect(try await second.next().goodbye.code == .draining)
            second.peer.close(nil)
            await servingAgain.value
            await down.value
        }
    }

    @Test func aGoodbyeThatComesBeforeTheSessionIsOpenedEndsIt() async throws {
        let (opened, client) = try await connect()
        try client.send(hello(), .with { $0.goodbye.code = .closed })
        let intake = opened.inbox
        let hello = try await intake.hello.wait().get()
        let engine = SessionEngine(
            role: .server,
            options: SessionOptions(),
            details: SessionMachine.OpeningDetails(),
            timer: SharedTimer(clock: ManualClock())
        )
        let credentials = SessionCredentials(id: SessionID(1, 2), token: SessionToken(3, 4))
        let refusal = engine.opened(by: hello, credentials, isResumed: false, opened.connection, as: 1) {
            intake.attach(to: engine, as: 1)
        }
        guard case .saidByPeer(let goodbye)? = engine.endReason else { return #expect(Bool(false)) }
        #expect(refusal == nil && goodbye.code == .closed)
        client.peer.close(nil)
    }
}

// The limits that all sessions of a server share, and those of a message.
extension SessionServerTests {
    private func entries(_ count: Int) -> [String: String] {
        [String: String](uniqueKeysWithValues: (0..<count).map { ("\($0)", "v") })
    }

    @Test func requestsWithTooManyMetadataAreRefused() async throws {
        let seen = Notes<Int>()
        let count = SessionMethod.unary("t.T/Count") { (message: TestMessage, context) in
            seen.add(context.metadata.count)
            return message
        }
        try await withServer(count) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            let session = try #require(server.sessions.first)
            // The encoded size counts: an entry has 4 bytes of tag and length, its key 6, and its value 4 in addition.
            func long(_ length: Int) -> [String: String] { ["long": String(repeating: "v", count: length)] }
            let limit = (64 << 10) - 14
            let metadata = [entries(128), entries(129), long(limit), long(limit + 1), entries(5_000)]
            for (index, entries) in metadata.enumerated() {
                try await client.ask("t.T/Count", serial: UInt32(index + 1)) { $0.metadata = .init(entries) }
            }
            var statuses: [UInt32: UInt32] = [:]
            for _ in metadata {
                let response = try await client.next().urgentResponse
                statuses[response.serial] = response.status
            }
            let invalid = SessionStatus.Code.invalidArgument.rawValue
            #expect(statuses == [1: 0, 2: invalid, 3: 0, 4: invalid, 5: invalid])
            #expect(Set(seen.all) == [128, 1] && session.statistics.refusedRequestCount == 3)
            // A push has no response, so one with too many entries breaks the rules.
            try await client.push("t.T/Count") { $0.metadata = .init(entries(129)) }
            #expect(try await client.next().goodbye.code == .violation)
            try await until { server.sessions.isEmpty }
        }
    }

    @Test func handlersOfAllSessionsHaveALimit() async throws {
        let (begun, release) = (Event(), Event())
        let slow = SessionMethod.unary("t.T/Slow") { (message: TestMessage, _) in
            begun.signal()
            try await release.wait()
            return message
        }
        try await withServer(slow, configure: { $0.maximumHandlerCount = 1 }) { server, _ in
            let (first, second) = (
                try await RawSessionClient.connect(to: server), try await RawSessionClient.connect(to: server)
            )
            for client in [first, second] { _ = try await client.hello() }
            try await first.ask("t.T/Slow")
            try await begun.wait()
            try await second.ask("t.T/Slow")
            let refusal = try await second.next().urgentResponse
            #expect(refusal.status == SessionStatus.Code.resourceExhausted.rawValue)
            #expect(refusal.message.contains("The server runs as many handlers"))
            // A handler counts until it returns, also after its session has ended.
            try await first.send(.with { $0.goodbye.code = .closed })
            try await until { server.sessions.count == 1 }
            #expect(server.budget.held.handlerCount <= 1)
            release.signal()
            try await until { server.budget.held.handlerCount == 0 }
            try await second.ask("t.T/Slow", serial: 2)
            #expect(try await second.next().urgentResponse.status == 0)
        }
    }

    @Test func keptBytesOfAllSessionsHaveALimit() async throws {
        let release = Latch<Void>()
        let block = SessionMethod.push("t.T/Block") { (_: TestMessage, _) in try await release.wait() }
        try await withServer(block, echo, configure: { $0.maximumKeptByteCount = 20_000 }) { server, _ in
            let (first, second) = (
                try await RawSessionClient.connect(to: server), try await RawSessionClient.connect(to: server)
            )
            let welcome = try await first.hello().welcome
            let flooder = try #require(server.sessions.first)
            _ = try await second.hello()
            let victim = try #require(server.sessions.first { $0.id != flooder.id })
            // Each push costs 9,075 bytes: two have room.
            let payload = try TestMessage([UInt8](repeating: 1, count: 8_997)).serializedBytes()
            for _ in 1...3 { try await first.push("t.T/Block", payload) }
            let goodbye = try await first.next().goodbye
            #expect(goodbye.code == .draining && goodbye.message.contains("as much memory as its limit"))
            // The refusal to the others names the limit.
            try await second.ask("t.T/Echo")
            let refusal = try await second.next().urgentResponse
            #expect(refusal.status == SessionStatus.Code.resourceExhausted.rawValue)
            #expect(refusal.message.contains("The sessions of the server"))
            let error = await sessionError { try await victim.push("t.T/News", TestMessage(number: 1)) }
            #expect(error?.code == .serverExhausted)
            #expect(error?.message.contains("SessionServerConfiguration.maximumKeptByteCount") == true)
            // The push that had no room was not taken, and arrives again when there is room.
            let again = try await RawSessionClient.connect(to: server)
            let back = try await again.resume(welcome).welcome
            #expect(back.resumed && back.progress.received == 3, "the name of the method, and two pushes")
            try await again.send(.with { $0.goodbye.code = .closed })
            try await until { server.sessions.count == 1 }
            // The two pushes still wait for their handler.
            #expect(server.budget.held.byteCount > 18_000)
            release.open(with: ())
            try await until { server.budget.held.byteCount <= 4_096 }
            try await second.ask("t.T/Echo", serial: 2)
            #expect(try await second.next().urgentResponse.status == 0)
        }
    }

    @Test func aFloodOfUsedSessionsKeepsNobodyOut() async throws {
        try await withServer(
            echo,
            configure: { configuration in
                configuration.maximumSessionCount = 3
                configuration.maximumSessionCountPerIdentity = 2
                configuration.authenticate = { $0.name.isEmpty ? nil : SessionIdentity($0.name) }
            },
            { server, _ in
                // Each session is used once and left.
                for _ in 1...5 {
                    let client = try await RawSessionClient.connect(to: server)
                    #expect(try await !client.hello().welcome.sessionID.isEmpty)
                    try await client.ask("t.T/Echo")
                    #expect(try await client.next().urgentResponse.serial == 1)
                    try client.socket.reset()
                    try await until { server.state.withLockedValue { $0.connections.isEmpty } }
                }
                #expect(server.sessions.count == 3)
                // The sessions of one identity have their own limit.
                var clients: [RawSessionClient] = []
                for _ in 1...2 {
                    clients.append(try await RawSessionClient.connect(to: server))
                    #expect(try await !clients[clients.count - 1].hello { $0.name = "anna" }.welcome.sessionID.isEmpty)
                }
                let third = try await RawSessionClient.connect(to: server)
                let goodbye = try await third.hello { $0.name = "anna" }.goodbye
                #expect(goodbye.code == .full && goodbye.message.contains("identity"))
                for client in clients { try client.socket.reset() }
            }
        )
    }
}
