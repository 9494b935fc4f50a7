public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// How a connection behaves. The defaults suit messages of up to some hundred kilobytes.
public struct ConnectionConfiguration: Sendable {
    /// The most bytes that one message may have on the wire, prefix excluded, in both directions. Default: 4 MiB, well
    /// above usual messages and well below a harmful size.
    ///
    /// A peer that declares more is cut off before the message arrives. Values below 0 count as 0, and values that a
    /// prefix cannot declare as 2³²−1.
    public var maximumFrameLength = 4 << 20

    /// The time that connecting may take, including name look-up and handshakes. Default: 10 s, enough for three lost
    /// SYN packets.
    public var connectTimeout = Duration.seconds(10)

    /// The time limit for each step of a graceful close. While the rest is written, it limits the time without
    /// progress. The wait for the peer to end its side may take this long in all. A `Client` then waits this long
    /// again, in all, for the peer's system to acknowledge the last bytes. Default: 5 s.
    ///
    /// When the peer ends first, a `Client` goes on writing for this long in all, with or without progress. A peer that
    /// reads more slowly gets only a part of what was accepted.
    public var closeTimeout = Duration.seconds(5)

    /// How many received bytes may wait for the consumer. Each message counts for 64 bytes and its length on the wire.
    /// Above `high` the socket is not read, which holds up the peer; at `low` reading resumes. Default: 64 KiB and 256
    /// KiB, two of the largest reads.
    ///
    /// One more read of up to 256 KiB may come in, and when the peer ends its side, the bytes that the kernel still
    /// holds.
    public var inboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// How many bytes that the kernel has not yet taken may wait for the peer to read. At `high` sends wait; at `low`
    /// they resume. Default: 64 KiB and 256 KiB, enough to keep a fast socket busy between two wake-ups.
    ///
    /// Messages are accepted whole, so up to one message more is held, or with `send(contentsOf:)`, as many as it
    /// gathers.
    public var outboundWaterMarks = WaterMarks(low: 64 << 10, high: 256 << 10)

    /// The limits for messages from the peer.
    public var decodingOptions = DecodingOptions()

    /// When a silent peer is asked for a sign of life, on a connection that has heartbeat messages. Default: after 30 s
    /// of silence; after 60 s the connection fails with `heartbeatTimeout`. A WebSocket without heartbeat messages uses
    /// its own pings.
    ///
    /// While this side does not read, because too much waits for its consumer, no peer counts as silent.
    public var heartbeat = HeartbeatConfiguration()

    /// How the kernel watches the peer over TCP; nil turns this off. When the kernel gives up the peer, the connection
    /// fails with `peerUnresponsive`. Default: gone after 60 s, as with heartbeat messages.
    ///
    /// On a connection with heartbeat messages it begins only after the heartbeat's time, and matters only while no
    /// heartbeat runs: when this side does not read for long, or has finished sending.
    public var keepalive: KeepaliveConfiguration? = KeepaliveConfiguration()

    /// How long the peer may send nothing before the connection fails with `idleTimeout`; nil for no limit. Any byte
    /// counts, also one of a heartbeat. Default: nil, because a peer may only listen.
    ///
    /// Set it on a server whose peers send heartbeats or always have something to send, for example to twice the
    /// heartbeat's interval. Otherwise a silent peer keeps its place.
    public var idleTimeout: Duration?

    /// How long bytes may wait for a peer that takes none, before the connection fails with `writeTimeout`; nil for no
    /// limit. It fires up to a quarter of the time later. Default: nil, because the limit also cuts peers that read
    /// slowly: the peer's kernel takes more only after a good part of its buffer, which is megabytes, was read. (At 20
    /// KB/s over loopback it took nothing for a minute.)
    ///
    /// Over TCP, `KeepaliveConfiguration.unacknowledgedTimeout` has a similar effect.
    public var writeTimeout: Duration?

    /// How many bytes may be written after the last byte from the peer; nil for no limit. Above it the peer is asked
    /// for a sign of life, which must come within the heartbeat's `timeout`. A connection without heartbeat messages
    /// fails at once. The code is `tooManyUnansweredBytes`. Default: nil, since not every protocol answers.
    ///
    /// Over TCP, the time starts again while the ping is on its way and the peer's kernel acknowledges bytes: see
    /// `HeartbeatConfiguration`.
    public var unansweredByteLimit: Int?

    /// The proxy for connections; nil for none. Default: nil, so that an application decides whether to follow the
    /// environment of its users (`.environment`). Servers ignore it.
    ///
    /// Through a proxy, `keepalive` watches only the way to the proxy. The number of lost messages is not known
    /// (`ClientEvent.undeliveredMessageCount` is nil), because the proxy may acknowledge bytes that the peer never
    /// gets.
    public var proxy: ProxyConfiguration?

    /// The TLS settings for endpoints `tls` and `wss`. Servers ignore it and use `ServerConfiguration.tls`.
    public var tls = TLSClientConfiguration()

    /// The WebSocket settings for endpoints `ws` and `wss`. Default: no headers, credentials or subprotocols.
    public var webSocket = WebSocketConfiguration()

    /// Makes a configuration with the default values.
    public init() {}

    /// - Parameters:
    ///   - maximumFrameLength: the most bytes that a received frame may have.
    ///   - tracksDelivery: whether the end of a connection reports the number of lost messages.
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
