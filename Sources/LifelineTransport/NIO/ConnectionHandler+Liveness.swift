internal import LifelineCore
internal import LifelineRuntime
internal import NIOCore

/// Drives `Liveness` with one timer, and with the handler's reads and writes.
extension ConnectionHandler {
    func probe() {
        perform(liveness?.probe(now: now()) ?? .none)
        armLivenessTimer()
    }

    func perform(_ action: Liveness.Action) {
        metrics.heartbeatsMissed(liveness?.takeMissCount() ?? 0)
        switch action {
        case .none: return
        case .giveUp(let code): fail(liveness?.error(for: code) ?? .connectionLost, resetting: true)
        case .sendPing(let number): sendPing(number: number)
        }
    }

    private func sendPing(number: UInt64) {
        do throws(ConnectionError) {
            let frame = try receiver.pingFrame(number: number)
            if frame == nil, layersSendPings { return sendLayerPing(number: number) }
            guard let frame, let flushNow = outbound.append(frame) else {
                liveness?.pingsBecameImpossible()
                return
            }
            metrics.heartbeatSent()
            liveness?.pingQueued { context.flatMap { acknowledgedByteCount($0.channel) } }
            if flushNow { flush() }
        } catch {
            fail(error, resetting: true)
        }
    }

    /// Makes several retransmissions fit into each of the heartbeat's timeouts. Otherwise a peer would count as gone
    /// after a few lost packets in a row.
    func boundRetransmission() {
        guard let channel = context?.channel, let timeout = livenessOptions.heartbeat?.timeout else { return }
        withSocket(of: channel) { TCPSocket.boundRetransmission($0, within: timeout / 4) }
    }

    private func sendLayerPing(number: UInt64) {
        guard let context else { return }
        metrics.heartbeatSent()
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenFailure { _ in self.liveness?.pingsBecameImpossible() }
        liveness?.pingQueued { acknowledgedByteCount(context.channel) }
        context.triggerUserOutboundEvent(LayerPing(number: number), promise: sent)
        liveness?.pingWritten { socketByteCount }
    }

    /// The number of bytes passed to the socket since the connection was made, after the layers have transformed the
    /// frames' bytes.
    ///
    /// Bytes that the peer acknowledges between the two system calls are missing; the next acknowledgement includes
    /// them.
    private var socketByteCount: UInt64? {
        guard let channel = context?.channel, let acknowledged = acknowledgedByteCount(channel),
            let unacknowledged = unacknowledgedByteCount(channel)
        else { return nil }
        return acknowledged + unacknowledged + UInt64(channelByteCount)
    }

    /// Sets the timer to the next deadline. A timer that fires early has nothing to do and is set again, which costs
    /// less than moving it at every read.
    func armLivenessTimer() {
        guard let context, let deadline = liveness?.deadline else { return }
        livenessTimer.set(to: deadline, now: now(), on: context.eventLoop) {
            self.livenessTimer.fired()
            let action = self.liveness?.timerFired(waitingByteCount: self.channelByteCount, now: self.now()) {
                self.context.flatMap { self.acknowledgedByteCount($0.channel) }
            }
            self.perform(action ?? .none)
            self.armLivenessTimer()
        }
    }

    /// Notes a write that was just passed to the channel.
    func watchWrite(byteCount: Int) {
        let total: (() -> UInt64?)? = hasLayers ? { self.socketByteCount } : nil
        let action = liveness?.wrote(byteCount: byteCount, now: now(), total: total) ?? .none
        if action != .none {
            perform(action)
            armLivenessTimer()
        }
        // Mostly the kernel has taken all bytes by now.
        guard isWriting else { return }
        liveness?.writeWaits(byteCount: channelByteCount, now: now())
        armLivenessTimer()
    }
}

/// Runs `body` with a channel's socket; returns nil if it has none, or no longer has one.
func withSocket<Result>(of channel: any Channel, _ body: (CInt) -> Result) -> Result? {
    typealias Handle = NIOBSDSocket.Handle
    return try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: Handle.self) { body($0) }
}
