import Lifeline
import LifelineClientTestSupport
import LifelineCore
import LifelineTestSupport
import Logging
import Metrics
import MetricsTestKit
import NIOConcurrencyHelpers
import Testing

/// Logs and metrics.
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

    @Test func theFirstConnectionIsNoReconnect() async throws {
        let metrics = TestMetrics()
        let harness = ClientHarness(hasNetwork: false, metrics: metrics)
        try await harness.run { client in
            try await until { client.state == .waitingForNetwork }
            harness.network.change(to: .available)
            try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
            client.reconnect()
            try await harness.transport.nextAttempt().accept()
            try await until { client.state == .ready }
        }
        let reconnects = metrics.counters.filter { $0.label == "lifeline.reconnects" }
        #expect(reconnects.map(\.totalValue) == [1])
    }

    /// Between a change of the queue and its record, another change may be made and recorded.
    @Test func theGaugeOfTheQueueEndsOnThePresentNumber() async throws {
        let values = NIOLockedValueBox<[Int64]>([])
        let metrics = GaugeMetrics { value in
            // The first message is given up while its record is made.
            if value == 1 { withUnsafeCurrentTask { $0?.cancel() } }
            values.withLockedValue { $0.append(value) }
        }
        let harness = ClientHarness(metrics: metrics)
        try await harness.run { client in
            let sending = Task { try await client.send(TestMessage(number: 1)) }
            await #expect(throws: CancellationError.self) { try await sending.value }
            #expect(client.queuedMessageCount == 0)
        }
        #expect(values.withLockedValue { $0 } == [1, 0])
    }

    @Test func metricsCountConnectionsAndReconnects() async throws {
        let metrics = TestMetrics()
        let harness = ClientHarness(metrics: metrics) { $0.backoff.maximumAttempts = 2 }
        var events = harness.client.events.makeAsyncIterator()
        func queuedCount() -> Double? {
            try? metrics.expectGauge("lifeline.queued.messages", [("role", "client")]).lastValue
        }
        func count(_ label: String, _ reason: String? = nil) -> Int64? {
            let dimensions = [("role", "client")] + (reason.map { [("reason", $0)] } ?? [])
            return try? metrics.expectCounter(label, dimensions).totalValue
        }
        try await harness.run { client in
            async let waiting = client.send(TestMessage(number: 1))
            // The gauge is recorded after the change.
            try await until { queuedCount() == 1 }
            #expect(client.queuedMessageCount == 1)
            let peer = try await harness.transport.nextAttempt().accept()
            #expect(try await waiting == .accepted)
            try await until { queuedCount() == 0 }
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

/// Metrics that record only the values of gauges.
private final class GaugeMetrics: MetricsFactory {
    private final class Recorder: RecorderHandler {
        let report: @Sendable (Int64) -> Void

        init(report: @escaping @Sendable (Int64) -> Void) { self.report = report }

        func record(_ value: Int64) { report(value) }
        func record(_ value: Double) { report(Int64(value)) }
    }

    private let report: @Sendable (Int64) -> Void
    private let rest = NOOPMetricsHandler.instance

    init(report: @escaping @Sendable (Int64) -> Void) { self.report = report }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        Recorder(report: report)
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        rest.makeCounter(label: label, dimensions: dimensions)
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        rest.makeTimer(label: label, dimensions: dimensions)
    }

    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}
