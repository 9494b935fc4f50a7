package import CoreMetrics

/// What the connections of one client or server count together: bytes and frames, for each read and each write, never
/// for each message; pings sent, and those whose timeout came without a sign of life.
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
