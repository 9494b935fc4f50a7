internal import LifelineCore
internal import NIOCore

/// Drives `Liveness` with one timer and what the handler reads and writes.
extension ConnectionHandler {
    func probe() {
        perform(liveness?.probe(now: now()) ?? .none)
        armLivenessTimer()
    }

    func perform(_ action: Liveness.Action) {
        switch action {
        case .none: return
        case .giveUp(let code): fail(liveness?.error(for: code) ?? .connectionLost, resetting: true)
        case .sendPing(let number): sendPing(number: number)
        }
    }

    private func sendPing(number: UInt64) {
        do throws(ConnectionError) {
            guard let frame = try receiver.pingFrame(number: number), let flushNow = outbound.append(frame) else {
                liveness?.askingBecameImpossible()
                return
            }
            if flushNow { flush() }
        } catch {
            fail(error, resetting: true)
        }
    }

    /// Sees to it that the timer fires by the next deadline. One that fires earlier finds nothing to do and is set anew:
    /// cheaper than to move it with every read.
    func armLivenessTimer() {
        guard let context, let deadline = liveness?.deadline else { return }
        // The loop's clock stands still while the machine sleeps: a timer of before fires that much later.
        let due = context.eventLoop.now + TimeAmount(deadline - now())
        if let livenessTimer {
            // The two clocks are not read at the same moment.
            if livenessTimer.due <= due + .milliseconds(1) { return }
            livenessTimer.task.cancel()
        }
        let task = context.eventLoop.assumeIsolated().scheduleTask(deadline: due) {
            self.livenessTimer = nil
            self.perform(
                self.liveness?.timerFired(waitingByteCount: self.channelByteCount, now: self.now()) ?? .none
            )
            self.armLivenessTimer()
        }
        livenessTimer = (due, task)
    }

    func stopLivenessTimer() {
        livenessTimer?.task.cancel()
        livenessTimer = nil
    }

    /// Takes a write that was just handed to the channel into account.
    func watchWrite(byteCount: Int) {
        if liveness?.countsUnansweredBytes == true {
            perform(liveness?.wrote(byteCount: byteCount, now: now()) ?? .none)
            armLivenessTimer()
        }
        // Mostly the kernel has taken it all by now.
        guard isWriting else { return }
        liveness?.writeWaits(byteCount: channelByteCount, now: now())
        armLivenessTimer()
    }
}
