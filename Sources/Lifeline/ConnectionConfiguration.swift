public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// How a connection behaves. The defaults suit messages of up to some hundred kilobytes.
public struct ConnectionConfiguration: Sendable {
    /// The most bytes that one message may have on the wire, prefix excluded, in both directions. Default: 4 MiB, well
    /// over what messages are and well under what would hurt.
    ///
    /// A peer that declares more is cut off before the message has come. Values below 0 count as 0, those above what a
    /// prefix can declare as 2³²−1.
    public var maximumFrameLength = 4 << 20

    /// How long connecting may take, name look-up included. Default: 10 s, as long as three lost SYN packets take.
    public var connectTimeout = Duration.seconds(10)

    /// How long a graceful close waits without progress: for the peer to read what is still to be written, and then for
    /// the peer to end its side. Default: 5 s.
    public var closeTimeout = Duration.seconds(5)

    /// How much of what was received may wait for the consumer, in bytes: 64 for each message and its length on the
    /// wire. Over `high` the socket is not read, and so the peer is held up; from `low` on it is read again. Default:
    /// 64 KiB and 256 KiB: four of the largest reads.
    ///
    /// One read more may come in, and when the peer ends its side, what the kernel still holds.
    public var inboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// How much may wait for the peer to read it, in bytes not yet taken by the kernel. At `high` sends wait; they go on
    /// from `low` on. Default: 64 KiB and 256 KiB, enough to keep a fast socket busy between two wake-ups.
    ///
    /// A message is accepted whole, so that up to one message more is held.
    public var outboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// What messages are accepted from the peer.
    public var decodingOptions = DecodingOptions()

    /// Makes a configuration with the default values.
    public init() {}

    /// - Parameter role: What metrics tell clients and servers apart by.
    func transportOptions(role: String) -> ConnectionOptions {
        ConnectionOptions(
            maximumFrameLength: maximumFrameLength,
            connectTimeout: connectTimeout,
            closeTimeout: closeTimeout,
            outboundMarks: outboundWaterMarks,
            metrics: TransportMetrics(role: role)
        )
    }
}
