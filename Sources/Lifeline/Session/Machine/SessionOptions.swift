internal import LifelineCore

/// The settings of a session's machine. Users choose some of them: see `SessionLimits`.
package struct SessionOptions: Sendable {
    /// The most that the ordinary lane keeps for the peer before senders wait: 8 MiB and 65,536 frames. Requests may
    /// take as many bytes again, and responses half as many.
    package var outboundLimit = SessionWindow(frameCount: 65_536, byteCount: 8 << 20)
    /// The most that the peer may send in each lane before it is processed. Urgent messages are processed on arrival,
    /// so only the ordinary lane takes this much memory. Running requests may take as many bytes again.
    package var inboundWindow = SessionWindow(frameCount: 65_536, byteCount: 8 << 20)
    /// The initial credit in bytes of each method that the peer pushes and of each of its streams: 256 KiB, the size of
    /// a connection's inbound queue.
    package var inboundCredit = 256 << 10
    /// The most requests of this side that may wait for their responses.
    package var maximumRequestCount = 1024
    /// The most requests of the peer that may be processed at once, including cancelled ones that are not done.
    package var maximumRunningCount = 1024
    /// How long a client waits for the welcome: 10 s, the time that servers wait for the hello.
    package var welcomeTimeout = Duration.seconds(10)
    /// How long a peer that was told goodbye has to end its side of the connection: 2 s, several round trips of any
    /// network.
    package var goodbyeTimeout = Duration.seconds(2)
    /// The longest frame that this side takes, in bytes: 4 MiB, the default of connections.
    package var maximumFrameLength = 4 << 20
    /// The number of processed messages after which the peer is told at once; 32 KiB of them have the same effect. A
    /// sender may keep less than this side's window, and waits when all of that is under way.
    package var acknowledgementBatchSize = 16
    /// The longest delay otherwise: too short for a person to notice.
    package var acknowledgementDelay = Duration.milliseconds(20)
    /// How long the memory of removed messages is kept for others: 1 s, so that a session in use does not need new
    /// memory for each burst.
    package var spareMemoryDelay = Duration.seconds(1)

    package init() {}

    /// Returns the settings for a session that began with other terms: no limit shrinks, and credits began with the old
    /// terms.
    func with(_ terms: SessionTerms) -> SessionOptions {
        var options = self
        options.inboundWindow = SessionWindow(
            frameCount: max(inboundWindow.frameCount, terms.window.frameCount),
            byteCount: max(inboundWindow.byteCount, terms.window.byteCount)
        )
        options.inboundCredit = terms.credit
        options.maximumFrameLength = max(maximumFrameLength, terms.maximumFrameLength)
        return options
    }

    /// The size that a response may always have, so that every request can be refused: 1 KiB.
    static var smallResponseByteCount: Int { 1 << 10 }
}

extension InboundLane {
    init(_ options: SessionOptions, received: UInt64 = 0) {
        self.init(
            window: options.inboundWindow,
            batchSize: options.acknowledgementBatchSize,
            delay: options.acknowledgementDelay,
            received: received
        )
    }
}

extension UrgentLane {
    init(_ options: SessionOptions, received: UInt64 = 0) {
        self.init(
            window: options.inboundWindow,
            batchSize: options.acknowledgementBatchSize,
            delay: options.acknowledgementDelay,
            received: received
        )
    }
}
