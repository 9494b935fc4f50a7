extension SessionLimits {
    /// Returns the options for the machine.
    ///
    /// - Parameter maximumFrameLength: the longest frame that connections of the session take.
    func options(maximumFrameLength: Int) -> SessionOptions {
        var options = SessionOptions()
        options.maximumFrameLength = min(maximumFrameLength, Int(UInt32.max))
        options.outboundLimit = SessionWindow(
            frameCount: max(maximumKeptMessageCount, 4),
            byteCount: max(maximumKeptByteCount, SessionWindow.smallestByteCount)
        )
        options.inboundWindow = SessionWindow(
            frameCount: min(max(maximumUnprocessedMessageCount, 4), Int(UInt32.max)),
            byteCount: max(maximumUnprocessedByteCount, SessionWindow.smallestByteCount)
        )
        options.inboundCredit = max(maximumUnreadByteCount, SessionTerms.smallestCredit)
        options.maximumRequestCount = max(maximumRequestCount, 1)
        options.maximumRunningCount = max(maximumHandlerCount, 1)
        return options
    }
}

extension ConnectionConfiguration {
    /// The longest frame that connections of a session take: at least 4 KiB, as the protocol demands.
    var sessionFrameLimit: Int { max(maximumFrameLength, SessionTerms.smallestFrameLimit) }
}
