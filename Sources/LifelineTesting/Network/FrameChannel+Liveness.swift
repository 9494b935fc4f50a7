internal import LifelineCore

// Whether the peer still takes part: `Liveness` decides, and this drives it as the transport's handler does.
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

    /// Sees to it that the timer fires by the next deadline. One that fires earlier finds nothing to do and is set
    /// anew.
    func armLivenessTimer() {
        guard isOpen, let deadline = liveness?.deadline else { return }
        // One of before the machine slept fires that much later.
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

    /// Takes a write that the kernel was just offered into account.
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

    /// This program has begun to read, or to read no more.
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
