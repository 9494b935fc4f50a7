internal import LifelineCore

// The attempt or connection that there is.
extension SimulatedClient {
    /// Begins the next attempt, when the connection before it is closed.
    func beginNextAttempt() {
        guard channel == nil, let id = nextAttempt else { return }
        nextAttempt = nil
        channelID = id
        let options = FrameChannel.Options(
            maximumFrameLength: configuration.maximumFrameLength,
            marks: configuration.outboundMarks,
            closeTimeout: configuration.closeTimeout,
            liveness: configuration.liveness
        )
        let stream = SimulatedStream(number: server.nextStreamNumber(), from: host, to: server)
        let channel = FrameChannel(stream: stream, side: .client, host: host, options: options)
        channel.owner = self
        channel.reads = reads
        self.channel = channel
        observer?.client(self, began: id, over: stream)
        connectTimer.set(to: now + configuration.connectTimeout)
        stream.connect(for: channel)
    }

    func connectTimedOut() {
        guard let channel, channel.isOpening else { return }
        channel.abort(
            ConnectionError(code: .connectTimeout, message: "The peer did not answer in time.")
        )
    }

    /// Writes what was accepted and ends the connection. What waits for room on it waits for another one.
    func closeChannel() {
        guard let channel else { return }
        takeBack(channel.close())
    }
}

extension SimulatedClient: FrameChannelOwner {
    func channelOpened(_ channel: FrameChannel) {
        connectTimer.set(to: nil)
        let id = channelID
        report(.connected) { $0.connected(id, now: $1) }
    }

    func channel(_ channel: FrameChannel, received message: SimulatedMessage) {
        receivedMessages.append(message.payload)
    }

    func channelInputEnded(_ channel: FrameChannel) {
        guard state == .ready else { return }
        let id = channelID
        // The connection's own limit counts from the last progress, which a peer can make for ever.
        closeDeadline = now + configuration.closeTimeout.clamped(atLeast: .milliseconds(1))
        report(.ended(lastSignOfLife: nil)) { $0.connectionEnded(id, .ended(by: nil), now: $1) }
        closeChannel()
        setTimer()
    }

    /// Cuts a connection that the peer has ended and that still writes what was accepted.
    func cutWhatCloses(_ reason: TransitionReason.Code) {
        cutWhatCloses(TransitionReason(reason).asError)
    }

    func cutWhatCloses(_ reason: ConnectionError) {
        guard closeDeadline != nil else { return }
        closeDeadline = nil
        channel?.abort(reason)
    }

    func channelWillSendPing(_ channel: FrameChannel, number: UInt64) {
        host.simulation.note("\(host.name): ping \(number)")
    }

    func channelClosed(_ channel: FrameChannel, _ report: FrameChannel.ClosureReport, refused: [UInt64]) {
        let id = channelID
        self.channel = nil
        closeDeadline = nil
        if report.lastInboundAt == nil {
            // It was never open.
            connectTimer.set(to: nil)
        } else {
            record(id, channel, report)
        }
        if manager.connectionID == id, let lastInboundAt = report.lastInboundAt {
            let isDraining = state == .draining
            let failure = report.failure ?? (isDraining && !report.peerEndedInTime ? .peerDidNotEnd : nil)
            let reason = isDraining && failure == nil ? TransitionReason(.drained) : .ended(by: failure)
            let lastLife = reason.code == .heartbeatTimeout ? lastInboundAt : nil
            self.report(.ended(lastSignOfLife: lastLife)) {
                $0.connectionEnded(id, reason, lastSignOfLife: lastLife, now: $1)
            }
        } else if manager.connectionID == id, let failure = report.failure {
            self.report(.connectFailed) { $0.connectFailed(id, failure, now: $1) }
        }
        takeBack(refused)
        beginNextAttempt()
    }

    private func record(
        _ id: ConnectionManager.ConnectionID,
        _ channel: FrameChannel,
        _ report: FrameChannel.ClosureReport
    ) {
        let undelivered = report.unacknowledgedFrameCount
        connectionReports.append(ConnectionReport(attempt: id, time: now, undeliveredMessageCount: undelivered))
        host.simulation.note("\(host.name): connection \(id) is closed, \(undelivered) messages undelivered")
        observer?.client(
            self,
            closed: id,
            over: channel.stream.number,
            for: report.failure?.code,
            acknowledged: report.acknowledgedByteCount,
            undelivered: undelivered
        )
    }
}
