import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
import LifelineRuntime
import LifelineTestSupport
import LifelineTransport
import NIOConcurrencyHelpers
import Testing

@testable import Lifeline

// What a server bounds, and what it says when there is no room.
extension SessionServerTests {
    @Test func sessionsThatWereNeverUsedMakeWay() async throws {
        try await withServer(echo, configure: { $0.maximumSessionCount = 1 }) { server, clock in
            // It says hello, and leaves.
            let first = try await RawSessionClient.connect(to: server)
            let welcome = try await first.hello().welcome
            let unused = try #require(server.sessions.first)
            try first.socket.reset()
            let end = clock.now + .seconds(120)
            try await until { clock.nextWakeUp == end }
            let second = try await RawSessionClient.connect(to: server)
            #expect(try await second.hello().welcome.sessionID != welcome.sessionID)
            #expect(unused.engine.endReason.map { SessionError($0).code } == .expired)
            // So do those that were used, the oldest of the client's own address first.
            try await second.send(.with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") })
            #expect(try await second.next().response.serial == 1)
            try second.socket.reset()
            try await until { server.state.withLockedValue { $0.connections.isEmpty } }
            let used = try #require(server.sessions.first)
            let third = try await RawSessionClient.connect(to: server)
            #expect(try await !third.hello().welcome.sessionID.isEmpty)
            #expect(used.engine.endReason.map { SessionError($0).code } == .expired)
            // One that has a connection stays.
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
            for serial: UInt32 in 1...3 {
                try await client.send(
                    .with {
                        $0.sequence = UInt64(serial)
                        ($0.request.serial, $0.request.method) = (serial, "t.T/Slow")
                    }
                )
            }
            try await begun.wait()
            for serial: UInt32 in 2...3 {
                let response = try await client.next().response
                #expect((response.serial, response.status) == (serial, SessionStatus.Code.resourceExhausted.rawValue))
            }
            #expect(session.statistics.refusedRequestCount == 2)
            release.signal()
            let response = try await client.next().response
            #expect((response.serial, response.status) == (1, 0))
            #expect(session.statistics.refusedRequestCount == 2)
        }
    }

    @Test func aClientThatReadsNoResponsesGetsNoEndOfThem() async throws {
        let large = SessionMethod.unary("t.T/Large") { (_: TestMessage, _) in
            TestMessage([UInt8](repeating: 7, count: 4_000))
        }
        // 1 KiB for responses, 2 KiB for those that have no room.
        try await withServer(large, configure: { $0.limits.maximumKeptByteCount = 4_096 }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello { $0.window.frames = 1 }
            let session = try #require(server.sessions.first)
            for serial: UInt32 in 1...10 {
                try await client.send(
                    .with {
                        $0.sequence = UInt64(serial)
                        ($0.request.serial, $0.request.method) = (serial, "t.T/Large")
                    }
                )
            }
            try await until { session.statistics.keptMessageCount == 10 }
            // One has room, one waits.
            let kept = session.statistics.keptByteCount
            #expect(kept > 15_000 && kept < 17_000)
            var statuses: [UInt32] = []
            for place: UInt64 in 1...10 {
                let frame = try await client.next()
                #expect(frame.urgentSequence == place)
                statuses.append(frame.response.status)
                try await client.send(.with { $0.urgentAcknowledgement = place })
            }
            #expect(statuses.count { $0 == 0 } == 2)
            #expect(statuses.count { $0 == SessionStatus.Code.resourceExhausted.rawValue } == 8)
        }
    }

    // MARK: Connections in memory

    /// A connection to a server which has room for 1,000 bytes, and its client's end.
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
            [configuration] in SessionReceiver(configuration: configuration)
        }
        let peer = try await transport.nextAttempt().accept()
        return (try await opened, ScriptedSessionServer(peer: peer))
    }

    private func hello(_ populate: (inout Lifeline_Session_V1_Hello) -> Void = { _ in }) -> Lifeline_Session_V1_Frame {
        .with {
            ($0.hello.minimumVersion, $0.hello.maximumVersion, $0.hello.attempt) = (1, 1, 1)
            ($0.hello.window.frames, $0.hello.window.bytes) = (100, 100_000)
            populate(&$0.hello)
        }
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

    @Test(arguments: [false, true]) func whatIsSaidLastLinesUpWhereThereIsNoRoom(isReplaced: Bool) async throws {
        try await withServer(echo) { server, _ in
            let (opened, client) = try await connect()
            let serving = Task { await server.serve(opened) }
            try client.send(hello())
            let welcome = try await client.next().welcome
            let session = try #require(server.sessions.first)
            // The second waits in line, the third behind it.
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
                for place: UInt64 in 1...2 { #expect(try await client.next().sequence == place) }
                #expect(try await client.next().goodbye.code == .replaced)
                second.peer.close(nil)
                await both.value
            } else {
                // A gap.
                try client.send(.with { ($0.sequence, $0.push.method) = (2, "t.T/P") })
                for place: UInt64 in 1...2 { #expect(try await client.next().sequence == place) }
                #expect(try await client.next().goodbye.code == .violation)
            }
            client.peer.close(nil)
            await serving.value
        }
    }

    @Test func aClientThatComesBackToAServerThatGoesAwayIsTold() async throws {
        try await withServer(echo) { server, _ in
            let (opened, client) = try await connect()
            let serving = Task { await server.serve(opened) }
            try client.send(hello())
            let welcome = try await client.next().welcome
            client.peer.close(nil)
            await serving.value
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
            details: SessionOpeningDetails(),
            clock: ManualClock()
        )
        let refusal = engine.opened(by: hello.hello, .test(1), isResumed: false, opened.connection, as: 1) {
            intake.attach(to: engine, as: 1)
        }
        guard case .saidByPeer(let goodbye)? = engine.endReason else { return #expect(Bool(false)) }
        #expect(refusal == nil && goodbye.code == .closed)
        client.peer.close(nil)
    }
}

// What all sessions of a server share, and what no message may have.
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
            let metadata = [entries(128), entries(129), ["long": String(repeating: "v", count: 65_500)]]
            for (index, entries) in metadata.enumerated() {
                try await client.send(
                    .with {
                        $0.sequence = UInt64(index + 1)
                        ($0.request.serial, $0.request.method) = (UInt32(index + 1), "t.T/Count")
                        $0.request.metadata = .init(entries)
                    }
                )
            }
            var statuses: [UInt32: UInt32] = [:]
            for _ in 1...3 {
                let response = try await client.next().response
                statuses[response.serial] = response.status
            }
            let invalid = SessionStatus.Code.invalidArgument.rawValue
            #expect(statuses == [1: 0, 2: invalid, 3: invalid])
            #expect(seen.all == [128] && session.statistics.refusedRequestCount == 2)
            // So many that only to read them would take too much memory.
            try await client.send(
                .with {
                    ($0.sequence, $0.request.serial, $0.request.method) = (4, 4, "t.T/Count")
                    $0.request.metadata = .init(entries(5_000))
                }
            )
            // What was not read of the frame may have the system reset the connection before the goodbye is read.
            if let frame = try? await client.next() { #expect(frame.goodbye.code == .violation) }
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
            func ask(_ client: RawSessionClient, _ number: UInt64) async throws {
                try await client.send(
                    .with {
                        ($0.sequence, $0.request.serial) = (number, UInt32(number))
                        $0.request.method = "t.T/Slow"
                    }
                )
            }
            try await ask(first, 1)
            try await begun.wait()
            try await ask(second, 1)
            let refusal = try await second.next().response
            #expect(refusal.status == SessionStatus.Code.resourceExhausted.rawValue)
            #expect(refusal.message.contains("in the whole server"))
            // It counts until it has returned, also where its session is over.
            try await first.send(.with { $0.goodbye.code = .closed })
            try await until { server.sessions.count == 1 }
            #expect(server.budget.held.handlerCount <= 1)
            release.signal()
            try await until { server.budget.held.handlerCount == 0 }
            try await ask(second, 2)
            #expect(try await second.next().response.status == 0)
        }
    }

    @Test func whatAllSessionsKeepHasALimit() async throws {
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
            // Each counts for 9,777 bytes: two have room.
            let payload = try TestMessage([UInt8](repeating: 1, count: 8_997)).serializedBytes()
            for place in UInt64(1)...3 {
                try await first.send(
                    .with {
                        ($0.sequence, $0.push.method) = (place, "t.T/Block")
                        $0.push.payload = payload
                    }
                )
            }
            let goodbye = try await first.next().goodbye
            #expect(goodbye.code == .draining && goodbye.message.contains("as much as they may"))
            // The others are told which limit it is.
            try await second.send(
                .with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") }
            )
            let refusal = try await second.next().response
            #expect(refusal.status == SessionStatus.Code.resourceExhausted.rawValue)
            #expect(refusal.message.contains("All sessions of the server"))
            let error = await sessionError { try await victim.push("t.T/News", TestMessage(number: 1)) }
            #expect(error?.code == .serverExhausted)
            #expect(error?.message.contains("SessionServerConfiguration.maximumKeptByteCount") == true)
            // What had no room was not taken, and comes again when there is.
            let again = try await RawSessionClient.connect(to: server)
            let back = try await again.hello {
                ($0.sessionID, $0.token, $0.attempt) = (welcome.sessionID, welcome.token, 2)
            }.welcome
            #expect(back.resumed && back.received == 2)
            try await again.send(.with { $0.goodbye.code = .closed })
            try await until { server.sessions.count == 1 }
            // They wait for their handler yet.
            #expect(server.budget.held.byteCount > 19_000)
            release.open(with: ())
            try await until { server.budget.held.byteCount <= 4_096 }
            try await second.send(
                .with { ($0.sequence, $0.request.serial, $0.request.method) = (2, 2, "t.T/Echo") }
            )
            #expect(try await second.next().response.status == 0)
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
                // Each is used once and left.
                for _ in 1...5 {
                    let client = try await RawSessionClient.connect(to: server)
                    #expect(try await !client.hello().welcome.sessionID.isEmpty)
                    try await client.send(
                        .with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") }
                    )
                    #expect(try await client.next().response.serial == 1)
                    try client.socket.reset()
                    try await until { server.state.withLockedValue { $0.connections.isEmpty } }
                }
                #expect(server.sessions.count == 3)
                // Those of one identity are limited on their own.
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
