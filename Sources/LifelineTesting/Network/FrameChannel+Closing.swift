internal import LifelineCore

// Opening and closing.
extension FrameChannel {
    func streamOpened() {
        guard isOpening else { return }
        begin()
        owner?.channelOpened(self)
    }

    func streamFailed(_ error: ConnectionError) {
        end(error) {}
    }

    /// Ends this side when everything accepted is written, waits for the peer's end, and closes. What waits is refused.
    /// Returns the numbers of what was.
    func close() -> [UInt64] {
        guard isStanding, case .begin(let action) = machine.closeRequested() else { return [] }
        liveness?.closeRequested()
        livenessTimer.set(to: nil)
        perform(action)
        let refused = waitingNumbers
        line = []
        startCloseTimer()
        if queue.closeRequested().scheduleFlush { flush() }
        readAvailable()
        return refused
    }

    /// Gives the connection up.
    func abort(_ error: ConnectionError) {
        fail(error)
    }

    func fail(_ error: ConnectionError) {
        end(error) { stream.abort(side) }
    }

    /// The connection has failed, or its attempt.
    private func end(_ error: ConnectionError, cutting cut: () -> Void) {
        switch stage {
        case .opening:
            cut()
            close(with: ClosureReport(failure: error))
        case .standing:
            guard machine.failed(error) else { return }
            cut()
            becameInactive()
        case .ending(let report, _):
            // Both sides have ended, and nobody cares any more what has arrived.
            close(with: report)
        case .closed:
            break
        }
    }

    func perform(_ action: ConnectionStateMachine.EndAction) {
        if action.finishInput == .byPeer {
            do {
                try assembler.finish()
            } catch {
                return fail(.violation(error))
            }
            owner?.channelInputEnded(self)
        }
        // The owner may have ended it.
        guard action.closeChannel, isStanding else { return }
        stream.close(side)
        becameInactive()
    }

    func startCloseTimer() {
        takenAtCloseTimer = takenByteCount
        closeTimer.set(to: now + options.closeTimeout)
    }

    func closeTimerFired() {
        if isEnding { return lookForAcknowledgements() }
        guard isStanding else { return }
        switch machine.closeTimerEnded(madeProgress: takenByteCount > takenAtCloseTimer) {
        case .none: break
        case .wait: startCloseTimer()
        case .closeChannel:
            if machine.failure == nil { stream.close(side) } else { stream.abort(side) }
            becameInactive()
        }
    }

    /// There is no socket any more.
    private func becameInactive() {
        _ = machine.becameInactive()
        livenessTimer.set(to: nil)
        closeTimer.set(to: nil)
        let report = ClosureReport(
            failure: machine.failure,
            failedInUse: machine.failedInUse,
            peerEndedInTime: machine.peerEndedInTime,
            unwrittenByteCount: queue.unwrittenByteCount,
            lastInboundAt: lastInboundAt,
            acceptedFrameCount: acceptedFrameCount
        )
        _ = queue.closed(machine.failure ?? .closedLocally)
        outbound = []
        let timeout = machine.endedInOrder ? options.closeTimeout : .zero
        stage = .ending(report, AcknowledgementWait(timeout: timeout, now: now))
        lookForAcknowledgements()
    }

    /// What has arrived counts, though its acknowledgement comes after the end.
    func lookForAcknowledgements() {
        guard case .ending(let report, var wait) = stage else { return }
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        let pause = wait.checked(isOver: ledger.unacknowledgedFrameCount == 0, now: now)
        guard let pause else { return close(with: report) }
        stage = .ending(report, wait)
        closeTimer.set(to: now + pause)
    }

    private func close(with report: ClosureReport) {
        stage = .closed
        stream.release(side)
        livenessTimer.set(to: nil)
        closeTimer.set(to: nil)
        ledger.bytesAcknowledged(total: stream.acknowledgedByteCount(of: side))
        var report = report
        report.unacknowledgedFrameCount = ledger.unacknowledgedFrameCount
        let refused = waitingNumbers
        line = []
        owner?.channelClosed(self, report, refused: refused)
    }
}
