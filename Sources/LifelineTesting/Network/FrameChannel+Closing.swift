internal import LifelineCore

// Opening and closing.
extension FrameChannel {
    func streamOpened() {
        guard state == .opening else { return }
        state = .open
        begin()
        owner?.channelOpened(self)
    }

    func streamFailed(_ error: ConnectionError) {
        finish(state == .ending ? nil : error)
    }

    /// Ends this side when everything accepted is written, waits for the peer's end, and closes. What waits is refused.
    /// Returns the numbers of what was.
    func close() -> [UInt64] {
        guard state == .open else { return [] }
        state = .closing
        liveness?.closeRequested()
        livenessTimer.set(to: nil)
        let refused = waitingNumbers
        line = []
        startCloseTimer()
        flush()
        readAvailable()
        return refused
    }

    /// Gives the connection up.
    func abort(_ error: ConnectionError) {
        fail(error)
    }

    func fail(_ error: ConnectionError) {
        guard state != .closed else { return }
        // Both ends are over, and nobody cares any more what has arrived.
        if state == .ending { return finish(nil) }
        stream.abort(side)
        finish(error)
    }

    func closeIfBothEnded() {
        guard state == .closing, inputEnded, outputEnded else { return }
        state = .ending
        stream.close(side)
        // From now on, in all: acknowledgements one by one do not prolong it.
        closeTimer.set(to: now + options.closeTimeout)
        finishIfAcknowledged()
    }

    /// What has arrived counts, though its acknowledgement comes after the end.
    func finishIfAcknowledged() {
        guard state == .ending else { return }
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        if ledger.unacknowledgedFrameCount == 0 { finish(nil) }
    }

    func startCloseTimer() {
        progressAtCloseTimer = takenByteCount
        closeTimer.set(to: now + options.closeTimeout)
    }

    func closeTimerFired() {
        if state == .ending { return finish(nil) }
        guard state == .closing else { return }
        if outputEnded {
            stream.close(side)
            finish(nil, peerEndedInTime: false)
        } else if takenByteCount > progressAtCloseTimer {
            startCloseTimer()
        } else {
            fail(.peerDoesNotRead)
        }
    }

    private func finish(_ error: ConnectionError?, peerEndedInTime: Bool = true) {
        guard state != .closed else { return }
        let failedInUse = error != nil && state == .open
        state = .closed
        stream.release(side)
        livenessTimer.set(to: nil)
        closeTimer.set(to: nil)
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        let (refused, unwrittenByteCount) = (waitingNumbers, outbound.count)
        line = []
        outbound = []
        let report = ClosureReport(
            failure: error,
            failedInUse: failedInUse,
            peerEndedInTime: peerEndedInTime,
            unwrittenByteCount: unwrittenByteCount,
            lastInboundAt: lastInboundAt,
            acceptedFrameCount: acceptedFrameCount,
            unacknowledgedFrameCount: ledger.unacknowledgedFrameCount
        )
        owner?.channelClosed(self, report, refused: refused)
    }
}
