package import LifelineCore

// For transports outside this module.
extension OpenedConnection {
    /// Puts a connection and its inbox together.
    package init(_ connection: any TransportConnection, inbox: Inbox) {
        self.init(connection: connection, inbox: inbox)
    }
}

extension ClosureReport {
    /// Makes the report of a connection that failed in use, or ended in order.
    package init(
        failure: ConnectionError?,
        unwrittenByteCount: Int,
        acceptedFrameCount: Int,
        unacknowledgedFrameCount: Int?,
        lastInboundAt: MonotonicTime? = nil,
        peerEndedInTime: Bool = true
    ) {
        self.init(
            failure: failure,
            failedInUse: failure != nil,
            peerEndedInTime: peerEndedInTime,
            unwrittenByteCount: unwrittenByteCount,
            lastInboundAt: lastInboundAt,
            acceptedFrameCount: acceptedFrameCount,
            unacknowledgedFrameCount: unacknowledgedFrameCount
        )
    }
}
