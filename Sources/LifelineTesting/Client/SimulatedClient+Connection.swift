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
        report(.ended(lastSignOfLife: nil)) { $0.connectionEnded(id, .ended(by: nil), now: $1) }
        closeChannel()
    }

    func channelWillSendPing(_ channel: FrameChannel, number: UInt64) {
        host.simulation.note("\(host.name): ping \(number)")
    }

    func channelClosed(_ channel: FrameChannel, _ report: FrameChannel.ClosureReport, refused: [UInt64]) {
        let id = channelID
        self.channel = nil
        if report.lastInboundAt == nil {
            // It was never open.
            connectTimer.set(to: nil)
        } else {
            record(id, channel, report)
        }
        if manager.connectionID == id, let lastInboundAt = report.lastInboundAt {
            let isInOrder = state == .draining && report.failure == nil
            let reason = isInOrder ? TransitionReason(.drained) : .ended(by: report.failure)
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
