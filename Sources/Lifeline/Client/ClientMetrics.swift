internal import LifelineCore
internal import Metrics
internal import NIOConcurrencyHelpers

/// The metrics of a client, for swift-metrics. The connection counts bytes, frames and heartbeats.
struct ClientMetrics: Sendable {
    private let connectionsOpened: Counter
    private let queuedMessages: LatestGauge
    private let factory: any MetricsFactory

    init(factory: any MetricsFactory) {
        self.factory = factory
        connectionsOpened = Counter(
            label: "lifeline.connections.opened",
            dimensions: [("role", "client")],
            factory: factory
        )
        queuedMessages = LatestGauge(
            Gauge(label: "lifeline.queued.messages", dimensions: [("role", "client")], factory: factory)
        )
    }

    /// Records a step.
    ///
    /// - Parameter isReconnect: Whether it begins an attempt that is not the client's first.
    func record(_ transition: ConnectionTransition, isReconnect: Bool) {
        if transition.to == .ready { connectionsOpened.increment() }
        if isReconnect { count("lifeline.reconnects", transition) }
        if transition.endsConnection { count("lifeline.connections.ended", transition) }
        if transition.to == .gaveUp { count("lifeline.gave.up", transition) }
    }

    /// Records that the number of messages that wait for a connection has changed.
    func record(queuedCount: () -> Int) {
        queuedMessages.record(queuedCount)
    }

    /// Steps are rare enough to look the counter up each time.
    private func count(_ label: String, _ transition: ConnectionTransition) {
        let dimensions = [("role", "client"), ("reason", transition.reason.code.description)]
        Counter(label: label, dimensions: dimensions, factory: factory).increment()
    }
}

/// A gauge of a number that changes on many threads. Its last recorded value is the present number, even when two
/// threads report their changes in the wrong order.
private final class LatestGauge: Sendable {
    private enum State {
        case idle
        /// A thread is recording. `isOutdated` says that the number has changed meanwhile.
        case recording(isOutdated: Bool)
    }

    private let gauge: Gauge
    private let state = NIOLockedValueBox(State.idle)

    init(_ gauge: Gauge) {
        self.gauge = gauge
    }

    /// Records a changed number, or leaves that to the thread that is recording.
    func record(_ number: () -> Int) {
        let isMine = state.withLockedValue { state in
            if case .recording = state {
                state = .recording(isOutdated: true)
                return false
            }
            state = .recording(isOutdated: false)
            return true
        }
        guard isMine else { return }
        repeat { gauge.record(number()) } while !finishRecording()
    }

    /// False when the number has changed meanwhile.
    private func finishRecording() -> Bool {
        state.withLockedValue { state in
            if case .recording(isOutdated: true) = state {
                state = .recording(isOutdated: false)
                return false
            }
            state = .idle
            return true
        }
    }
}
