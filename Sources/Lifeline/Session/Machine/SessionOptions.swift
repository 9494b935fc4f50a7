internal import LifelineCore

/// The settings of a session's machine. Users choose some of them: see `SessionLimits`.
package struct SessionOptions: Sendable {
    /// The most that the ordinary lane keeps for the peer before senders wait: 8 MiB and 65,536 frames. Requests may
    /// take as many bytes once more, and responses half as many.
    package var outboundLimit = SessionWindow(frameCount: 65_536, byteCount: 8 << 20)
    /// The most that the peer may send in each lane before it is processed. Urgent messages are processed as they come,
    /// so that only the ordinary lane takes so much memory. Requests that run may take as many bytes once more.
    package var inboundWindow = SessionWindow(frameCount: 65_536, byteCount: 8 << 20)
    /// With how many bytes each method that the peer pushes and each of its streams begins: 256 KiB, as much as a
    /// connection's inbound queue takes.
    package var inboundCredit = 256 << 10
    /// Requests of this side's that may wait for their responses.
    package var maximumRequestCount = 1024
    /// Requests of the peer's that may be processed at once, those included that are cancelled and not done.
    package var maximumRunningCount = 1024
    /// How long a client waits for the welcome: 10 s, as servers wait for the hello.
    package var welcomeTimeout = Duration.seconds(10)
    /// How long a peer that was told goodbye has to end its side of the connection: 2 s, which are several round trips
    /// of any network.
    package var goodbyeTimeout = Duration.seconds(2)
    /// The longest frame that this side takes, in bytes: 4 MiB, as connections have it.
    package var maximumFrameLength = 4 << 20
    /// After so many processed messages the peer is told at once, or after 32 KiB of them: a sender may keep less than
    /// this side's window, and waits when all of that is under way.
    package var acknowledgementBatchSize = 16
    /// How long it may take otherwise: not longer than it takes a person to notice.
    package var acknowledgementDelay = Duration.milliseconds(20)
    /// How long memory that messages have left is kept for others: 1 s, so that a session in use does not need new
    /// memory for each burst.
    package var spareMemoryDelay = Duration.seconds(1)

    package init() {}

    /// The settings for a session that has begun under other terms: nothing shrinks, and its credits began with theirs.
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

    /// What a response may always have, so that every request can be refused: 1 KiB.
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
