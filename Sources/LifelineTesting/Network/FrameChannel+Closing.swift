internal import LifelineCore

// Closing.
extension FrameChannel {
    func streamOpened() {}

    func streamFailed(_ error: ConnectionError) { end(error) {} }

    /// Ends this side after all accepted bytes are written, waits for the client's end, and closes.
    func close() {
        guard isStanding, case .begin(let action) = machine.closeRequested() else { return }
        liveness?.closeRequested()
        livenessTimer.set(to: nil)
        perform(action)
        startCloseTimer()
        if queue.closeRequested().scheduleFlush { flush() }
        readAvailable()
    }

    /// Gives the connection up.
    func abort(_ error: ConnectionError) { end(error) { stream.abort(side) } }

    private func end(_ error: ConnectionError, cutting cut: () -> Void) {
        guard isStanding, machine.failed(error) else { return }
        cut()
        becameInactive()
    }

    func perform(_ action: ConnectionStateMachine.EndAction) {
        if action.finishInput == .byPeer {
            do {
                try assembler.finish()
            } catch {
                return abort(.violation(error))
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
        _ = queue.closed(machine.failure ?? .closedLocally)
        outbound = []
        isStanding = false
        stream.release(side)
        owner?.channelClosed(self, machine.failure)
    }
}
