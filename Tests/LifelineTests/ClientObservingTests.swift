import Lifeline
import LifelineCore
import Logging
import MetricsTestKit
import Testing

/// What operators see: logs and metrics.
@Suite(.timeLimit(.minutes(1))) struct ClientObservingTests {
    @Test func aHealthyClientIsQuiet() async throws {
        let log = TestLog()
        let harness = ClientHarness(log: log)
        try await harness.run { client in
            try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
        }
        #expect(log.entries.count == 4)
        #expect(log.entries.allSatisfy { $0.level == .debug })
    }

    @Test func troubleIsLoggedInOrderWithItsReasons() async throws {
        let log = TestLog()
        let harness = ClientHarness(log: log) { $0.backoff.maximumAttempts = 2 }
        var events = harness.client.events.makeAsyncIterator()
        try await harness.run { _ in
            let peer = try await harness.transport.nextAttempt().accept(unacknowledgedFrameCount: 3)
            _ = try await events.reach(.ready)
            peer.close(ConnectionError(code: .closedByPeer, message: "Reset by the test."))
            harness.clock.advance(to: try #require(try await events.reach(.backingOff).transition.nextAttempt))
            try await harness.transport.nextAttempt().refuse()
            _ = try await events.reach(.gaveUp)
        }
        #expect(log.entries.map(\.level) == [.debug, .debug, .notice, .debug, .error, .debug])
        let loss = try #require(log.entries.dropFirst(2).first?.text)
        for part in [
            "state: backingOff", "Reset by the test.", "undelivered-messages: 3", "next-attempt-in: 1.0 seconds",
        ] {
            #expect(loss.replacing("\"", with: "").contains(part), "\(loss)")
        }
    }

    @Test func metricsCountConnectionsAndReconnects() async throws {
        let metrics = TestMetrics()
        let harness = ClientHarness(metrics: metrics) { $0.backoff.maximumAttempts = 2 }
        var events = harness.client.events.makeAsyncIterator()
        func count(_ label: String, _ reason: String? = nil) -> Int64? {
            let dimensions = [("role", "client")] + (reason.map { [("reason", $0)] } ?? [])
            return try? metrics.expectCounter(label, dimensions).totalValue
        }
        try await harness.run { client in
            async let waiting = client.send(TestMessage(number: 1))
            try await until { client.queuedMessageCount == 1 }
            #expect(try metrics.expectGauge("lifeline.queued.messages", [("role", "client")]).lastValue == 1)
            let peer = try await harness.transport.nextAttempt().accept()
            #expect(try await waiting == .accepted)
            try await until {
                (try? metrics.expectGauge("lifeline.queued.messages", [("role", "client")]).lastValue) == 0
            }
            _ = try await events.reach(.ready)
            peer.close(nil)
            harness.clock.advance(to: try #require(try await events.reach(.backingOff).transition.nextAttempt))
            try await harness.transport.nextAttempt().accept()
            _ = try await events.reach(.ready)
            client.reconnect()
            try await harness.transport.nextAttempt().refuse()
            harness.clock.advance(to: try #require(try await events.reach(.backingOff).transition.nextAttempt))
            try await harness.transport.nextAttempt().refuse()
            _ = try await events.reach(.gaveUp)
        }
        #expect(count("lifeline.connections.opened") == 2)
        #expect(count("lifeline.reconnects", "retryDue") == 2)
        #expect(count("lifeline.reconnects", "reconnectRequested") == 1)
        #expect(count("lifeline.connections.ended", "closedByPeer") == 1)
        #expect(count("lifeline.connections.ended", "reconnectRequested") == 1)
        #expect(count("lifeline.gave.up", "attemptsUsedUp") == 1)
    }
}
