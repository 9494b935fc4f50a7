package import LifelineCore

/// The state of one end of an open connection, for checks.
package struct ChannelStatus: Sendable {
    /// The number of the connection.
    package let stream: Int
    /// The number of reads that brought bytes.
    package let readCount: Int
    /// The time since which the program reads; nil while it does not read, or after the end of the input.
    package let readsSince: MonotonicTime?
    /// Bytes of all writes so far, including the one in progress.
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
