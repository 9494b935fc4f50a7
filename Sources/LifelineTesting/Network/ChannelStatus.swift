package import LifelineCore

/// What there is to see of one end of an open connection, for who checks it.
package struct ChannelStatus: Sendable {
    /// Which connection it is.
    package let stream: Int
    /// How often bytes have come in.
    package let readCount: Int
    /// Since when what comes is read; nil while it is not, or when no more will come.
    package let readsSince: MonotonicTime?
    /// Bytes of all writes so far, that one included which is under way.
    package let writtenByteCount: UInt64
    /// Bytes that the kernel has taken.
    package let takenByteCount: Int
    /// Bytes of a write that the kernel has not taken.
    package let waitingByteCount: Int
    /// Bytes that the peer's kernel has acknowledged.
    package let acknowledgedByteCount: UInt64
    /// Bytes that the peer's kernel has not acknowledged.
    package let unacknowledgedByteCount: UInt64
    /// Whether nothing passes between its ends any more.
    package let isCutOff: Bool
}

extension ChannelStatus {
    /// Nil unless it is open.
    init?(_ channel: FrameChannel) {
        guard channel.isOpen else { return nil }
        let acknowledged = channel.stream.acknowledgedByteCount(of: channel.side)
        self.init(
            stream: channel.stream.number,
            readCount: channel.readCount,
            readsSince: channel.hasInputEnded ? nil : channel.readsSince,
            writtenByteCount: channel.writtenByteCount,
            takenByteCount: channel.takenByteCount,
            waitingByteCount: channel.writingByteCount,
            acknowledgedByteCount: acknowledged,
            unacknowledgedByteCount: channel.acceptedByteCount - acknowledged,
            isCutOff: channel.stream.isCutOff
        )
    }
}
