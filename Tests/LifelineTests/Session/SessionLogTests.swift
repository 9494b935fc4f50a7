import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import NIOConcurrencyHelpers
import TestProtos
import Testing

@testable import Lifeline

/// A peer cannot flood the log of a session, or write terminal commands into it and into error messages.
@Suite(.timeLimit(.minutes(1))) struct SessionLogTests {
    private static let evil = "x\u{1b}[2J\n\u{9b}\u{202e}\u{2028}"
    private static let escaped = #"x\u{1b}[2J\u{a}\u{9b}\u{202e}\u{2028}"#

    private var push: SessionMethod { .push("t.T/Push") { (_: TestMessage, _) in } }

    /// 5,000 pushes that are malformed messages cause a few lines, and a count at the end.
    @Test func malformedPushesDoNotFillTheLog() async throws {
        let log = TestLog()
        let count = 5_000
        // The pushes arrive faster than they are handled.
        try await withServer(push, log: log, configure: { $0.limits.maximumUnreadByteCount = 1 << 20 }) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            let method = try await client.name("t.T/Push")
            let frame = Lifeline_Session_V1_Frame.with { ($0.push.method, $0.push.payload) = (method, [0xFF]) }
            let bytes = try frame.withDelimitedBytes { Array($0) }
            try await client.socket.write((0..<count).flatMap { _ in bytes })
            let session = try #require(server.sessions.first)
            // One more: the method's name.
            try await until { session.engine.state.withLock { $0.machine.inbound.processed } == UInt64(count) + 1 }
            await session.end(gracePeriod: .seconds(1000))
            try await until { session.isOver }
        }
        let lines = log.entries.filter { $0.text.contains("The handler of a push failed") }
        #expect(lines.count == 6, "five, and the one that counts")
        #expect(lines.last?.text.contains("\(count - 5) of \"The handler of a push failed\"") == true, "\(lines)")
    }

    @Test func pushesThatNobodyHandlesDoNotFillTheLog() async throws {
        let log = TestLog()
        try await withServer(push, log: log) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            for number in 1...50 { try await client.push("\(Self.evil)\(number)") }
            let session = try #require(server.sessions.first)
            try await until { session.statistics.unwantedPushCount == 50 }
        }
        let lines = log.entries.filter { $0.text.contains("There is no method for a push") }
        #expect(lines.count == 6)
        #expect(lines.first?.text.contains("\(Self.escaped)1") == true, "\(lines)")
        #expect(lines.last?.text.contains("45 of") == true, "\(lines)")
    }

    @Test func failuresOfHandlersAreEscaped() async throws {
        struct Failure: Error, CustomStringConvertible { let description = SessionLogTests.evil }
        let log = TestLog()
        let method = SessionMethod.unary("t.T/Fail") { (_: TestMessage, _) -> TestMessage in throw Failure() }
        try await withServer(method, log: log) { server, _ in
            let client = try await RawSessionClient.connect(to: server)
            _ = try await client.hello()
            try await client.ask("t.T/Fail")
            #expect(try await client.next().urgentResponse.serial == 1)
        }
        let lines = log.entries.filter { $0.text.contains("A handler failed") }
        #expect(lines.count == 1 && lines.first?.text.contains(Self.escaped) == true, "\(lines)")
    }

    @Test func wordsOfThePeerAreEscapedInErrors() {
        let status = SessionStatus(.internal, Self.evil)
        #expect("\(status)" == "internal: \(Self.escaped)" && status.message == Self.evil)
        let error = SessionError(status: status)
        #expect(error.message == Self.escaped && error.status?.message == Self.evil)
        let refused = SessionError(SessionGoodbye(.refused, Self.evil), byPeer: true)
        #expect(refused.message.hasSuffix("The peer says: \(Self.escaped)") && refused.status?.message == Self.evil)
        let caused = SessionError(code: .sessionLost, message: "Lost.", cause: refused)
        #expect("\(caused)".hasSuffix(Self.escaped))
        let unknown = SessionMethod.unimplemented(Self.evil)
        #expect(unknown.name == Self.evil)
    }

    /// A letter with any number of marks is one character.
    @Test func aGoodbyeIsShort() {
        let goodbye = SessionGoodbye(.closed, "e" + String(repeating: "\u{301}", count: 100_000))
        #expect(goodbye.message.unicodeScalars.count == 1_000)
    }

    /// For many sessions or connections, the server's log has its own limit.
    @Test func aServersLogHasALimit() {
        let (log, clock) = (TestLog(), ManualClock())
        let limited = LimitedLog.ofServer(log.logger) { clock.now }
        for number in 0..<1_000 { limited.logger.warning("A connection ended", metadata: ["number": "\(number)"]) }
        #expect(log.entries.count == 100)
        for _ in 0..<1_000 { limited.logger.debug("A detail") }
        #expect(log.entries.count == 1_100, "who asks for details gets all")
        clock.advance(by: .seconds(10))
        limited.logger.warning("A connection ended")
        #expect(log.entries.last?.text.contains(#""left-out": 900"#) == true, "\(log.entries.last?.text ?? "")")
        for _ in 0..<100 { limited.logger.warning("A connection ended") }
        limited.logLeftOutCounts()
        #expect(log.entries.last?.text.contains("1 of \"A connection ended\"") == true)
    }
}
