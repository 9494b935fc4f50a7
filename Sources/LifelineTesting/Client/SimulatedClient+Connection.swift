internal import LifelineCore

// The attempt or connection that there is.
extension SimulatedClient {
    func connect(_ id: ClientMachine.ConnectionID) {
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
        let id = channelID
        report(.inputEnded) { $0.inputEnded(id, now: $1) }
    }

    func channelWillSendPing(_ channel: FrameChannel, number: UInt64) {
        host.note("ping \(number)")
    }

    func channelClosed(_ channel: FrameChannel, _ report: ClosureReport, refused: [UInt64]) {
        let id = channelID
        self.channel = nil
        inHand = nil
        if report.lastInboundAt == nil {
            // It was never open.
            connectTimer.set(to: nil)
            self.report(.connectFailed) { $0.connectFailed(id, report.failure, now: $1) }
        } else {
            record(id, channel, report)
            self.report(.closed(report)) { $0.connectionClosed(id, report, now: $1) }
        }
        takeBack(refused)
    }

    private func record(_ id: ClientMachine.ConnectionID, _ channel: FrameChannel, _ report: ClosureReport) {
        let undelivered = report.unacknowledgedFrameCount ?? 0
        connectionReports.append(ConnectionReport(attempt: id, time: now, undeliveredMessageCount: undelivered))
        host.note("connection \(id) is closed, \(undelivered) messages undelivered")
        observer?.client(
            self,
            closed: id,
            over: channel.stream.number,
            for: report.failure?.code,
            acknowledged: channel.stream.acknowledgedByteCount(of: .client),
            undelivered: undelivered
        )
    }
}
