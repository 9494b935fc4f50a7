internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// Tells what has arrived when a connection is over.
extension ConnectionHandler {
    /// A connection that both sides have ended, while what was written last is still on its way.
    struct LastWait {
        var report: ClosureReport
        var wait: AcknowledgementWait
        let eventLoop: any EventLoop
        var timer: Scheduled<Void>?
    }

    /// The connection is over, and there is no channel any more.
    ///
    /// - Parameter waiting: Whether what is on its way may still arrive.
    func finish(_ report: ClosureReport, waiting: Bool, on eventLoop: any EventLoop) {
        // Our end makes the peer's TCP acknowledge what has come without its usual delay.
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
        // A loop that is shut down waits for nothing.
        timer?.futureResult.assumeIsolated().whenFailure { _ in self.endLastWait() }
        lastWait?.timer = timer
    }

    /// Reports what is known.
    func endLastWait() {
        guard let lastWait else { return }
        self.lastWait = nil
        watch = nil
        closed.open(with: lastWait.report)
        lastWait.timer?.cancel()
    }
}
