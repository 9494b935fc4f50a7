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
            let frame = try receiver.pingFrame(number: number)
            if frame == nil, layersAskForLife { return sendLayerPing(number: number) }
            guard let frame, let flushNow = outbound.append(frame) else {
                liveness?.askingBecameImpossible()
                return
            }
            if flushNow { flush() }
        } catch {
            fail(error, resetting: true)
        }
    }

    private func sendLayerPing(number: UInt64) {
        guard let context else { return }
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenFailure { _ in self.liveness?.askingBecameImpossible() }
        context.triggerUserOutboundEvent(LayerPing(number: number), promise: sent)
    }

    /// Sees to it that the timer fires by the next deadline. One that fires earlier finds nothing to do and is set anew:
    /// cheaper than to move it with every read.
    func armLivenessTimer() {
        guard let context, let deadline = liveness?.deadline else { return }
        if let livenessTimer {
            if livenessTimer.deadline <= deadline { return }
            livenessTimer.task.cancel()
        }
        let task = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(deadline - now())) {
            self.livenessTimer = nil
            self.perform(
                self.liveness?.timerFired(waitingByteCount: self.channelByteCount, now: self.now()) ?? .none
            )
            self.armLivenessTimer()
        }
        livenessTimer = (deadline, task)
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
