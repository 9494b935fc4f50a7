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

    /// How long connecting may take, name look-up and handshakes included. Default: 10 s, as long as three lost SYN
    /// packets take.
    public var connectTimeout = Duration.seconds(10)

    /// How long a graceful close waits without progress for the peer to read what is still to be written, and then in
    /// all for the peer to end its side. A `Client` then waits as long again, in all, for the peer's system to
    /// acknowledge what was written last. Default: 5 s.
    ///
    /// When the peer ends first, a `Client` writes on for as long in all, progress or not: a peer that
    /// reads too slowly for that gets only a part of what was accepted.
    public var closeTimeout = Duration.seconds(5)

    /// How much of what was received may wait for the consumer, in bytes: 64 for each message and its length on the
    /// wire. Over `high` the socket is not read, and so the peer is held up; from `low` on it is read again. Default:
    /// 64 KiB and 256 KiB: two of the largest reads.
    ///
    /// One read more may come in, of up to 256 KiB, and when the peer ends its side, what the kernel still holds.
    public var inboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// How much may wait for the peer to read it, in bytes not yet taken by the kernel. At `high` sends wait; they go
    /// on from `low` on. Default: 64 KiB and 256 KiB, enough to keep a fast socket busy between two wake-ups.
    ///
    /// A message is accepted whole, so that up to one message more is held; or with `send(contentsOf:)`, as many as it
    /// gathers.
    public var outboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// What messages are accepted from the peer.
    public var decodingOptions = DecodingOptions()

    /// When a silent peer is asked for a sign of life, on a connection that has heartbeat messages. Default: after 30
    /// s, and 60 s until it counts as gone; the connection fails with `heartbeatTimeout` then. A WebSocket without
    /// heartbeat messages asks with its own pings.
    ///
    /// While this side does not read, because its consumer has too much already, no peer is held to be silent.
    public var heartbeat = HeartbeatConfiguration()

    /// How the kernel watches the peer, over TCP; nil when it shall not. When it gives the peer up, the connection
    /// fails with `peerUnresponsive`. Default: gone after 60 s, as with heartbeat messages.
    ///
    /// On a connection that has heartbeat messages it begins only where the heartbeat ends, and matters only while
    /// there is none: when this side does not read for long, or has finished sending.
    public var keepalive: KeepaliveConfiguration? = KeepaliveConfiguration()

    /// How long the peer may send nothing until the connection fails with `idleTimeout`; nil for as long as it likes.
    /// Any byte counts, also one of a heartbeat. Default: nil, since a peer that only listens is no fault.
    ///
    /// Give a server one whose peers have heartbeats, or always something to say, such as twice the heartbeat's
    /// interval: else a peer that is silent keeps its place.
    public var idleTimeout: Duration?

    /// How long bytes may wait for the peer while it takes none, until the connection fails with `writeTimeout`; nil
    /// for as long as it likes. Noticed up to a quarter of it later. Default: nil, for it cuts peers that read slowly,
    /// too: the peer's kernel takes more only when a good part of its buffer, which is megabytes, was read. (At 20 KB/s
    /// over loopback it took nothing for a minute.)
    ///
    /// Over TCP, `KeepaliveConfiguration.unacknowledgedTimeout` bounds the same.
    public var writeTimeout: Duration?

    /// How many bytes may be written since the peer last sent one; nil for as many as it takes. A connection that goes
    /// over it is asked for a sign of life, which must come within the heartbeat's `timeout`; one without heartbeat
    /// messages fails at once. The code is `tooManyUnansweredBytes`. Default: nil, since not every protocol answers.
    ///
    /// Over TCP, the time counts anew while the question is on its way and the peer's kernel acknowledges something, as
    /// `HeartbeatConfiguration` says.
    public var unansweredByteLimit: Int?

    /// The proxy that connections go through; nil for none. Default: nil, so that an application decides whether its
    /// users' environment counts: `.environment`. A server's configuration has no use for it.
    ///
    /// Through a proxy, `keepalive` watches the way to the proxy only, and what of the sends was lost is not known
    /// (`ClientEvent.undeliveredMessageCount` is nil): what the proxy acknowledges, the peer need not have.
    public var proxy: ProxyConfiguration?

    /// How TLS is spoken to an endpoint `tls` or `wss`. Plays no part in a server, which has `ServerConfiguration.tls`.
    public var tls = TLSClientConfiguration()

    /// How a WebSocket is opened and used, on endpoints `ws` and `wss`. Default: no headers, credentials or
    /// subprotocols.
    public var webSocket = WebSocketConfiguration()

    /// Makes a configuration with the default values.
    public init() {}

    /// - Parameters:
    ///   - maximumFrameLength: What is received may have so many bytes.
    ///   - tracksDelivery: Whether the end of a connection is to tell what was lost.
    func transportOptions(
        maximumFrameLength: Int,
        hasHeartbeat: Bool,
        tracksDelivery: Bool = false,
        metrics: TransportMetrics
    ) -> ConnectionOptions {
        ConnectionOptions(
            maximumFrameLength: maximumFrameLength,
            connectTimeout: connectTimeout,
            closeTimeout: closeTimeout,
            outboundMarks: outboundWaterMarks,
            liveness: LivenessOptions(
                heartbeat: hasHeartbeat ? heartbeat : nil,
                idleTimeout: idleTimeout,
                writeTimeout: writeTimeout,
                unansweredByteLimit: unansweredByteLimit
            ),
            keepalive: hasHeartbeat ? keepalive?.beginning(after: heartbeat) : keepalive,
            tracksDelivery: tracksDelivery,
            metrics: metrics
        )
    }
}
