package import CoreMetrics

/// The counters of all connections of one client or server. They count bytes and frames at each read and write, never
/// at each message, and pings sent and missed.
package struct TransportMetrics: Sendable {
    private let receivedBytes: Counter
    private let receivedFrames: Counter
    private let sentBytes: Counter
    private let sentFrames: Counter
    private let sentHeartbeats: Counter
    private let missedHeartbeats: Counter

    /// - Parameter role: `client` or `server`, a dimension of each counter.
    package init(role: String, factory: any MetricsFactory = MetricsSystem.factory) {
        func counter(_ name: String) -> Counter {
            Counter(label: "lifeline.\(name)", dimensions: [("role", role)], factory: factory)
        }
        receivedBytes = counter("received.bytes")
        receivedFrames = counter("received.frames")
        sentBytes = counter("sent.bytes")
        sentFrames = counter("sent.frames")
        sentHeartbeats = counter("heartbeats.sent")
        missedHeartbeats = counter("heartbeats.missed")
    }

    func received(byteCount: Int, frameCount: Int) {
        receivedBytes.increment(by: byteCount)
        if frameCount > 0 { receivedFrames.increment(by: frameCount) }
    }

    func sent(byteCount: Int, frameCount: Int) {
        sentBytes.increment(by: byteCount)
        if frameCount > 0 { sentFrames.increment(by: frameCount) }
    }

    func heartbeatSent() {
        sentHeartbeats.increment()
    }

    func heartbeatsMissed(_ count: Int) {
        if count > 0 { missedHeartbeats.increment(by: count) }
    }
}
