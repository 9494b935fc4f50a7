internal import LifelineCore

// The heartbeat.
extension FrameChannel {
    /// There is a reason to ask whether the peer lives.
    func probe() {
        guard state == .open, let number = heartbeat?.probe(now: now) else { return }
        sendPing(number)
    }

    private func sendPing(_ number: UInt64) {
        owner?.channelWillSendPing(self, number: number)
        if let ping = try? SimulatedMessage(kind: .ping, number: number).frame(encoder) { sendUncounted(ping) }
        setHeartbeatTimer()
    }

    func setHeartbeatTimer() {
        heartbeatTimer.set(to: state == .open ? heartbeat?.deadline : nil)
    }

    func heartbeatTimerFired() {
        guard state == .open else { return }
        switch heartbeat?.timerFired(lastInboundAt: lastInboundAt, now: now) {
        case .sendPing(let number): sendPing(number)
        case .timedOut: fail(.silent)
        case .some(.none), nil: setHeartbeatTimer()
        }
    }
}
