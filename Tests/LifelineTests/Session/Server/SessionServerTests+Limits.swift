import LifelineClientTestSupport
import LifelineCore
import LifelineProtos
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
            #expect(unused.engine.end?.code == .expired)
            // One that has said something stays.
            try await second.send(.with { ($0.sequence, $0.request.serial, $0.request.method) = (1, 1, "t.T/Echo") })
            #expect(try await second.next().response.serial == 1)
            try second.socket.reset()
            try await until { server.state.withLockedValue { $0.connections.isEmpty } }
            let third = try await RawSessionClient.connect(to: server)
            #expect(try await third.hello().goodbye.code == .full)
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
        // 256 bytes for responses, 8 KiB for those that have no room.
        try await withServer(large, configure: { $0.limits.maximumKeptByteCount = 1_024 }) { server, _ in
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
            // One has room, two wait.
            let kept = session.statistics.keptByteCount
            #expect(kept > 12_000 && kept < 14_000)
            var statuses: [UInt32] = []
            for place: UInt64 in 1...10 {
                let frame = try await client.next()
                #expect(frame.urgentSequence == place)
                statuses.append(frame.response.status)
                try await client.send(.with { $0.urgentAcknowledgement = place })
            }
            #expect(statuses.count { $0 == 0 } == 3)
            #expect(statuses.count { $0 == SessionStatus.Code.resourceExhausted.rawValue } == 7)
        }
    }

    // MARK: Connections in memory

    /// A connection to a server which has room for 1,000 bytes, and its client's end.
    private func connect() async throws -> (OpenedConnection<SessionLink>, ScriptedSessionServer) {
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
}
