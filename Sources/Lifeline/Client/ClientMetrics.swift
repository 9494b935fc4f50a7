internal import LifelineCore
internal import Metrics

/// What a client tells swift-metrics. Bytes, frames and heartbeats are the connection's to count.
struct ClientMetrics: Sendable {
    private let connectionsOpened: Counter
    private let queuedMessages: Gauge
    private let factory: any MetricsFactory

    init(factory: any MetricsFactory) {
        self.factory = factory
        connectionsOpened = Counter(
            label: "lifeline.connections.opened",
            dimensions: [("role", "client")],
            factory: factory
        )
        queuedMessages = Gauge(label: "lifeline.queued.messages", dimensions: [("role", "client")], factory: factory)
    }

    /// A step was made.
    func record(_ transition: ConnectionTransition) {
        if transition.to == .ready { connectionsOpened.increment() }
        if transition.to == .connecting, transition.reason.code != .started {
            count("lifeline.reconnects", transition)
        }
        if transition.endsConnection { count("lifeline.connections.ended", transition) }
        if transition.to == .gaveUp { count("lifeline.gave.up", transition) }
    }

    /// So many messages wait for a connection.
    func record(queuedCount: Int) {
        queuedMessages.record(queuedCount)
    }

    /// Seldom enough to look the counter up each time.
    private func count(_ label: String, _ transition: ConnectionTransition) {
        let dimensions = [("role", "client"), ("reason", transition.reason.code.description)]
        Counter(label: label, dimensions: dimensions, factory: factory).increment()
    }
}
