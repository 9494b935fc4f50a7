import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import LifelineTransport
import Logging
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

// Servers that misbehave, and the errors that the user gets.
extension SessionClientTests {
    @Test func anotherFrameThanAWelcomeEndsOnlyTheConnection() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var server = try await harness.accept()
            try await server.welcome()
            try await client.push("t.T/P", TestMessage(number: 1))
            _ = try await server.next()
            server = try await harness.reconnect(server)
            #expect(try await server.next().hello.sessionID == [UInt8](repeating: 1, count: 16))
            try server.send(.with { $0.push.method = 1 })
            try await server.peer.waitForAbort()
            #expect(try sessionFrames(in: server.peer.read()).isEmpty)
            try await harness.waitForBackoff()
            server = try await harness.accept()
            let hello = try await server.welcome(resumed: true)
            #expect(hello.sessionID == [UInt8](repeating: 1, count: 16))
            #expect(try await server.next().number == 1)
        }
    }

    @Test func messagesTooLargeForANewSession() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var events = client.sessionEvents.makeAsyncIterator()
            try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 5_000)))
            try await client.push("t.T/P", TestMessage(number: 2))
            let server = try await harness.accept()
            try await server.welcome { $0.maximumFrame = 4_096 }
            #expect(try await server.next().number == 2)
            guard case .opened(_, resumed: false)? = await events.next()?.kind else { return #expect(Bool(false)) }
            guard case .refused(let messages)? = await events.next()?.kind else { return #expect(Bool(false)) }
            #expect(messages.map(\.outcome) == [.refused] && messages.map(\.payload.count) == [5_003])
            #expect(client.statistics.refusedMessageCount == 1)
        }
    }

    /// The server keeps the connection and answers pings; the client leaves.
    @Test func aServerThatAccusesTheClient() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            var events = client.sessionEvents.makeAsyncIterator()
            var server = try await harness.accept()
            try await server.welcome()
            try await client.push("t.T/P", TestMessage(number: 1))
            _ = try await server.next()
            try server.send(.with { ($0.goodbye.code, $0.goodbye.message) = (.violation, "No such place.") })
            try await server.peer.waitForClose()
            try await harness.waitForBackoff()
            server = try await harness.accept()
            #expect(try await server.welcome(id: 2).sessionID.isEmpty)
            _ = await events.next()
            let event = try #require(await events.next())
            guard case .lost(let inDoubt) = event.kind else { return #expect(Bool(false)) }
            #expect(inDoubt.map(\.outcome) == [.inDoubt])
            #expect(event.reason?.code == .protocolViolation)
            #expect(event.reason?.message.contains("No such place.") == true)
            let warnings = harness.log.entries.filter { $0.level == .warning }
            #expect(warnings.contains { $0.text.contains("No such place.") })
        }
    }

    @Test func aHelloThatNoServerTakes() async throws {
        // The tags and the lengths of the entry take 8 bytes, and its name 5.
        for (length, isTaken) in [((16 << 10) - 13, true), ((16 << 10) - 12, false)] {
            var configuration = SessionClientConfiguration()
            configuration.metadata = ["token": String(repeating: "x", count: length)]
            if isTaken {
                try configuration.checkOpening(configuration.metadata)
            } else {
                let client = SessionClient(to: .unix(path: "/nowhere"), configuration: configuration)
                #expect(await connectionError { try await client.run() }?.code == .invalidConfiguration)
            }
        }
    }

    /// Otherwise its timer would fire again and again.
    @Test func anAcknowledgementThatHasNoRoomWaitsForIt() async throws {
        let harness = SessionClientHarness()
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            let pushes = client.pushes("t.T/N", of: TestMessage.self)
            // More than the connection accepts before the peer reads.
            for _ in 1...3 { try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 300_000))) }
            #expect(client.engine.state.withLock { $0.outlet?.isBlocked } == true)
            try server.push("t.T/N")
            for try await _ in pushes { break }
            let due = harness.clock.now + .milliseconds(20)
            try await until { harness.clock.nextWakeUp == due }
            harness.clock.advance(to: due)
            try await until { client.engine.state.withLock { $0.alarm?.deadline } != due }
            try await server.waitForAcknowledgement(of: 2)
        }
    }

    /// The older message was accepted, and is gone: one of the two is sent.
    @Test func cancellingTheWaitForAReplacingPush() async throws {
        let harness = SessionClientHarness { $0.limits.maximumKeptByteCount = 4_096 }
        try await harness.run { client in
            func message(_ count: Int) -> TestMessage { TestMessage([UInt8](repeating: 1, count: count)) }
            try await client.push("t.T/K", message(10), delivery: .replaceable(key: "k"))
            try await client.push("t.T/P", message(2_900))
            let newer = Task { try await client.push("t.T/K", message(420), delivery: .replaceable(key: "k")) }
            try await until { client.statistics.replacedMessageCount == 1 }
            newer.cancel()
            try await newer.value
            let server = try await harness.accept()
            try await server.welcome()
            let pushes = [try await server.next(), try await server.next()]
            #expect(pushes.map(\.payload.count).sorted() == [423, 2_903])
        }
    }

    @Test func aGoodbyeIsWrittenWhereThereIsNoRoom() async throws {
        let harness = SessionClientHarness {
            $0.client.connection.outboundWaterMarks = WaterMarks(low: 500, high: 1_000)
        }
        try await harness.run { client in
            let server = try await harness.accept()
            try await server.welcome()
            server.peer.holdClosing()
            // The second push waits to be sent, and the goodbye waits behind it.
            for _ in 1...2 { try await client.push("t.T/P", TestMessage([UInt8](repeating: 1, count: 2_000))) }
            client.engine.end(.abandoned)
            try await server.peer.waitForClose()
            for place: UInt64 in 2...3 { #expect(try await server.next().place == place) }
            #expect(try await server.next().goodbye.code == .closed)
            server.peer.close(nil)
        }
    }
}
