internal import LifelineCore

// Drives `Liveness`, which decides whether the peer is alive, as the transport's handler does.
extension FrameChannel {
    func perform(_ action: Liveness.Action) {
        switch action {
        case .none: return
        case .giveUp(let code): abort(liveness?.error(for: code) ?? .gone)
        case .sendPing(let number): sendPing(number)
        }
    }

    private func sendPing(_ number: UInt64) {
        guard let ping = try? SimulatedMessage(kind: .ping, number: number).frame(encoder) else { return }
        liveness?.pingQueued { stream.acknowledgedByteCount(of: side) }
        sendUncounted(ping)
    }

    /// Ensures that the timer fires by the next deadline. A timer that fires earlier finds nothing to do, and is set
    /// again.
    func armLivenessTimer() {
        guard isOpen, let deadline = liveness?.deadline else { return }
        // A timer from before the machine's sleep fires later by the time of the sleep.
        if livenessTimer.fires(by: deadline) { return }
        livenessTimer.reset(to: deadline)
    }

    func livenessTimerFired() {
        guard isOpen else { return }
        let action = liveness?.timerFired(waitingByteCount: writingByteCount, now: now) {
            stream.acknowledgedByteCount(of: side)
        }
        perform(action ?? .none)
        armLivenessTimer()
    }

    /// Accounts for a write that was just offered to the kernel.
    func watchWrite(byteCount: Int) {
        let action = liveness?.wrote(byteCount: byteCount, now: now) ?? .none
        if action != .none {
            perform(action)
            armLivenessTimer()
        }
        guard writingByteCount > 0, isOpen else { return }
        liveness?.writeWaits(byteCount: writingByteCount, now: now)
        armLivenessTimer()
    }

    /// The program has started or stopped reading.
    func readingChanged() {
        let isReading = reads && !isReadHeld
        if isReading == (readsSince != nil) { return }
        guard isStanding else { return }
        readsSince = isReading ? now : nil
        if isReading {
            liveness?.readingResumed(now: now)
            armLivenessTimer()
            readAvailable()
        } else {
            liveness?.readingPaused()
        }
    }
}
