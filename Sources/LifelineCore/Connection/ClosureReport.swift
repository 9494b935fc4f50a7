/// How a connection ended.
package struct ClosureReport: Sendable {
    /// The reason for which it failed; nil when both sides ended it, or the peer did not end its side in time.
    package var failure: ConnectionError?
    /// Whether it failed while it was in use, before a graceful close was requested.
    package var failedInUse: Bool
    /// False when a graceful close wrote everything, and the peer did not end its side in time.
    package var peerEndedInTime: Bool
    /// Bytes that were accepted and could not be written.
    package var unwrittenByteCount: Int
    /// The time at which the peer's last bytes were received; nil when there were none, and when that is not tracked.
    package var lastInboundAt: MonotonicTime?
    /// Frames that were reported to their senders as accepted.
    package var acceptedFrameCount: Int
    /// Accepted frames that the peer's TCP had not fully acknowledged at the end. Nil when that was not tracked, and
    /// for Unix sockets, which acknowledge nothing.
    package var unacknowledgedFrameCount: Int?

    /// - Parameter failedInUse: if nil, true when it has failed at all.
    package init(
        failure: ConnectionError? = nil,
        failedInUse: Bool? = nil,
        peerEndedInTime: Bool = true,
        unwrittenByteCount: Int = 0,
        lastInboundAt: MonotonicTime? = nil,
        acceptedFrameCount: Int = 0,
        unacknowledgedFrameCount: Int? = nil
    ) {
        self.failure = failure
        self.failedInUse = failedInUse ?? (failure != nil)
        self.peerEndedInTime = peerEndedInTime
        self.unwrittenByteCount = unwrittenByteCount
        self.lastInboundAt = lastInboundAt
        self.acceptedFrameCount = acceptedFrameCount
        self.unacknowledgedFrameCount = unacknowledgedFrameCount
    }
}
