extension SessionLimits {
    /// Returns what the machine goes by.
    ///
    /// - Parameter maximumFrameLength: the longest frame that connections of the session take.
    func options(maximumFrameLength: Int) -> SessionOptions {
        var options = SessionOptions()
        options.maximumFrameLength = min(max(maximumFrameLength, 1), Int(UInt32.max))
        options.outboundLimit = SessionWindow(
            frameCount: max(maximumKeptMessageCount, 4),
            byteCount: max(maximumKeptByteCount, SessionWindow.smallestByteCount)
        )
        options.inboundWindow = SessionWindow(
            frameCount: min(max(maximumUnprocessedMessageCount, 4), Int(UInt32.max)),
            byteCount: max(maximumUnprocessedByteCount, SessionWindow.smallestByteCount)
        )
        options.maximumRequestCount = max(maximumRequestCount, 1)
        options.maximumRunningCount = max(maximumHandlerCount, 1)
        return options
    }
}
