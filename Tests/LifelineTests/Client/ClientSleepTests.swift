import Lifeline
import LifelineClientTestSupport
import LifelineCore
import Testing

/// A machine or a process that was suspended.
@Suite(.timeLimit(.minutes(1))) struct ClientSleepTests {
    private let heartbeat = HeartbeatMessages<TestMessage, TestMessage>(
        ping: { TestMessage(number: Int($0)) },
        answer: { _ in nil },
        isAnswer: { _ in false }
    )

    @Test func asksThePeerAtOnce() async throws {
        let harness = ClientHarness(heartbeat: heartbeat)
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            // While time passes normally, the client sends no ping. It checks the time every 15 s.
            for _ in 0..<10 {
                try await until { harness.clock.nextWakeUp == harness.clock.now + .seconds(15) }
                harness.clock.advance(by: .seconds(15))
            }
            try await until { harness.clock.nextWakeUp == harness.clock.now + .seconds(15) }
            #expect(peer.probeCount == 0)
            harness.clock.advance(by: .seconds(30))
            try await until { peer.probeCount == 1 }
        }
    }

    @Test func asksNobodyWithoutAHeartbeat() async throws {
        let harness = ClientHarness()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            #expect(harness.clock.nextWakeUp == nil)
            harness.clock.advance(by: .seconds(3600))
            client.reconnect()
            #expect(peer.probeCount == 0)
        }
    }

    /// A peer that accepts and never answers uses up the attempts, however long the client waited for it.
    @Test func silenceIsNoStability() async throws {
        let harness = ClientHarness { $0.backoff.maximumAttempts = 1 }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { client in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            harness.clock.advance(by: .seconds(60))
            peer.close(ConnectionError(code: .heartbeatTimeout, message: "Silent in the test."))
            #expect(try await events.reach(.gaveUp).transition.reason.error?.code == .heartbeatTimeout)
        }
    }

    @Test func aPeerThatSpokeForLongEnoughIsTriedAgainAtOnce() async throws {
        let harness = ClientHarness { $0.backoff.maximumAttempts = 1 }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            let peer = try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            peer.spoke(at: harness.clock.now + .seconds(10))
            harness.clock.advance(by: .seconds(60))
            peer.close(ConnectionError(code: .heartbeatTimeout, message: "Silent in the test."))
            #expect(try await events.reach(.connecting).transition.reason.code == .heartbeatTimeout)
        }
    }
}
