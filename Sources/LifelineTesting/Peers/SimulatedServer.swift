package import LifelineCore

/// A program that listens on a host, reads messages and answers pings, or misbehaves as its `behavior` says.
package final class SimulatedServer {
    /// The heartbeat of a server, and the limits of its connections.
    package struct Configuration: Sendable {
        /// When a silent client is pinged, and when it counts as dead. Default: as a client's. Nil for no heartbeat.
        package var heartbeat: HeartbeatConfiguration? = HeartbeatConfiguration()
        /// The time for which a client may send nothing. Default: nil, no limit.
        package var idleTimeout: Duration?
        /// The time for which bytes may wait while the client takes none. Default: nil, no limit.
        package var writeTimeout: Duration?
        /// The number of bytes that may be written after a client's last byte. Above that, the client is pinged.
        /// Default: nil, no limit.
        package var unansweredByteLimit: Int?
        /// The time for which a graceful close may make no progress. Default: 5 s.
        package var closeTimeout = Duration.seconds(5)
        /// The largest frame. Default: 4 MiB.
        package var maximumFrameLength = 4 << 20
        /// Reading a client stops at the high mark of unread answers, until the low mark. Default: 64 and 256 KiB.
        package var outboundMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

        /// Makes a configuration with the default values.
        package init() {}

        package var liveness: LivenessOptions {
            LivenessOptions(
                heartbeat: heartbeat,
                idleTimeout: idleTimeout,
                writeTimeout: writeTimeout,
                unansweredByteLimit: unansweredByteLimit
            )
        }
    }

    /// A received message.
    package struct ReceivedMessage: Sendable, Hashable {
        /// The number of the connection, counted from 1 in the order of acceptance.
        package let connection: Int
        /// The client's number of the message.
        package let number: UInt64
        /// The bytes sent.
        package let payload: [UInt8]
    }

    /// The host on which it runs.
    package let host: SimulatedHost
    /// Its behavior. A change applies to open connections too, except for `endsAfterBytes`.
    package var behavior = PeerBehavior() { didSet { adopt(oldValue) } }
    /// Whether the program runs; if not, connections are refused.
    package private(set) var isRunning = true
    /// All received messages, in order.
    package private(set) var receivedMessages: [ReceivedMessage] = []
    /// The number of accepted connections.
    package private(set) var connectionCount = 0

    /// Called after the end of an accepted connection, with an error if this side gave it up or lost it.
    package var onClose: ((_ stream: Int, ConnectionError.Code?) -> Void)?
    package var onMessage: ((_ stream: Int, SimulatedServer.ReceivedMessage) -> Void)?

    private struct Peer {
        let number: Int
        let channel: FrameChannel
        var messageCount = 0
    }

    package let configuration: Configuration
    private var peers: [Peer] = []

    /// Starts the program on a host.
    package init(on host: SimulatedHost, configuration: Configuration = Configuration()) {
        self.host = host
        self.configuration = configuration
    }

    /// Kills the program. Its kernel resets its connections.
    package func kill() {
        host.note(.killed)
        isRunning = false
        resetConnections()
    }

    /// Starts the program again after `kill()`.
    package func restart() {
        host.note("restarted")
        isRunning = true
    }

    /// Resets every connection.
    package func resetConnections() {
        for peer in peers { peer.channel.abort(.closedByServer) }
    }

    /// Closes every connection in order.
    package func closeConnections() {
        for peer in peers { peer.channel.close() }
    }

    /// Sends a message on every connection. Drops it on connections on which it would have to wait.
    ///
    /// - Throws: `FramingError.payloadTooLarge` if it is longer than `maximumFrameLength` allows.
    package func broadcast(_ payload: [UInt8]) throws(FramingError) {
        let encoder = FrameEncoder(maximumFrameLength: configuration.maximumFrameLength)
        let frame = try SimulatedMessage(kind: .message, number: 0, payload: payload).frame(encoder)
        for peer in peers { peer.channel.offer(frame) }
    }

    /// Cuts the connections after `count` more bytes from each client.
    package func cutConnections(_ cut: SimulatedStream.Cut, afterBytes count: Int) {
        for peer in peers { peer.channel.stream.cut(cut, afterClientBytes: count) }
    }

    /// Cancels pending cuts.
    package func cancelCuts() {
        for peer in peers { peer.channel.stream.cancelCut() }
    }

    /// Calls `body` for each open connection.
    package func forEachChannel(_ body: (ChannelStatus) -> Void) {
        for peer in peers { ChannelStatus(peer.channel).map(body) }
    }

    private func adopt(_ old: PeerBehavior) {
        if behavior != old { host.note("\(behavior)") }
        for peer in peers { adopt(for: peer.channel) }
    }

    private func adopt(for channel: FrameChannel) {
        channel.answerDelay = behavior.answersPings ? behavior.answerDelay : nil
        if channel.reads != behavior.reads { channel.reads = behavior.reads }
    }
}

extension SimulatedServer: SimulatedListener {
    func answer(_ stream: SimulatedStream) {
        guard isRunning else { return stream.refuse(.connectionRefused) }
        switch behavior.greeting {
        case .accept, .acceptAndClose, .acceptAndReset:
            if behavior.answerDelay <= .zero { return stream.accept() }
            host.simulation.schedule(after: behavior.answerDelay) { self.host.whenAwake { stream.accept() } }
        case .refuse: stream.refuse(.connectionRefused)
        case .ignore: stream.ignore()
        case .rejectTLS: stream.refuse(.certificateRejected)
        }
    }

    func accepted(_ stream: SimulatedStream) -> (any StreamOwner)? {
        guard isRunning else { return nil }
        if behavior.greeting == .acceptAndReset { return nil }
        let options = FrameChannel.Options(
            maximumFrameLength: configuration.maximumFrameLength,
            marks: configuration.outboundMarks,
            closeTimeout: configuration.closeTimeout,
            liveness: configuration.liveness
        )
        let channel = FrameChannel(stream: stream, host: host, options: options)
        channel.owner = self
        connectionCount += 1
        peers.append(Peer(number: connectionCount, channel: channel))
        adopt(for: channel)
        if let count = behavior.endsAfterBytes {
            stream.cut(behavior.manner == .fallSilent ? .silence : .reset, afterClientBytes: count)
        }
        host.note("connection \(connectionCount) is open")
        // The stream has to know its owner first.
        if behavior.greeting == .acceptAndClose { host.simulation.schedule(after: .zero) { channel.close() } }
        return channel
    }

    private func end(_ channel: FrameChannel) {
        switch behavior.manner {
        case .close: channel.close()
        case .reset: channel.abort(.closedByServer)
        case .violateProtocol: channel.sendUncounted([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        case .fallSilent: channel.stream.cut(.silence, afterClientBytes: 0)
        }
    }
}

extension SimulatedServer: FrameChannelOwner {
    func channel(_ channel: FrameChannel, received message: SimulatedMessage) {
        guard let index = peers.firstIndex(where: { $0.channel === channel }) else { return }
        peers[index].messageCount += 1
        let received = ReceivedMessage(
            connection: peers[index].number,
            number: message.number,
            payload: message.payload
        )
        receivedMessages.append(received)
        host.note("message \(message.number) on connection \(received.connection)")
        onMessage?(channel.stream.number, received)
        if let count = behavior.endsAfterMessages, peers[index].messageCount >= count { end(channel) }
    }

    func channelInputEnded(_ channel: FrameChannel) {
        channel.close()
    }

    func channelClosed(_ channel: FrameChannel, _ failure: ConnectionError?) {
        guard let index = peers.firstIndex(where: { $0.channel === channel }) else { return }
        let reason = failure.map { "\($0.code)" } ?? "in order"
        host.note("connection \(peers[index].number) is closed: \(reason)")
        peers.remove(at: index)
        onClose?(channel.stream.number, failure?.code)
    }
}

extension ConnectionError {
    static var closedByServer: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The server gave the connection up.")
    }
}
