internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// Reports which messages have arrived when a connection is over.
extension ConnectionHandler {
    /// The state of a connection that both sides have ended while its last bytes are still on their way.
    struct LastWait {
        var report: ClosureReport
        var wait: AcknowledgementWait
        let eventLoop: any EventLoop
        var timer: Scheduled<Void>?
    }

    /// Finishes a connection that is over and has no channel any more.
    ///
    /// - Parameter waiting: whether bytes on their way may still arrive.
    func finish(_ report: ClosureReport, waiting: Bool, on eventLoop: any EventLoop) {
        // The end of this side makes the peer's TCP acknowledge received bytes without its usual delay.
        if waiting { watch?.endOutput() }
        let wait = AcknowledgementWait(timeout: waiting ? closeTimeout : .zero, now: now())
        lastWait = LastWait(report: report, wait: wait, eventLoop: eventLoop)
        lookForAcknowledgements()
    }

    private func lookForAcknowledgements() {
        guard let watch, lastWait != nil else { return endLastWait() }
        let isOver = watch.isOver
        let frameCount = outbound.acknowledge(byteCount: watch.acknowledgedByteCount)
        lastWait?.report.unacknowledgedFrameCount = frameCount
        let pause = lastWait?.wait.checked(isOver: isOver || frameCount ?? 0 == 0, now: now())
        guard let pause else { return endLastWait() }
        let timer = lastWait?.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(pause)) {
            self.lookForAcknowledgements()
        }
        // A loop that is shut down runs no timers.
        timer?.futureResult.assumeIsolated().whenFailure { _ in self.endLastWait() }
        lastWait?.timer = timer
    }

    /// Ends the wait, and reports what is known.
    func endLastWait() {
        guard let lastWait else { return }
        self.lastWait = nil
        watch = nil
        closed.open(with: lastWait.report)
        lastWait.timer?.cancel()
    }
}
