/// Settings for when a silent peer is asked for a sign of life, and when it counts as gone.
///
/// A dead peer is noticed at most `interval + allowedMisses × timeout` after its last byte: 60 s by default. If the
/// timeout is longer than the interval, it is used in place of the interval. A value out of range counts as the nearest
/// one in range.
///
/// Over TCP, a ping may wait behind bytes that the peer's kernel has not acknowledged, because packets are lost or the
/// peer reads slowly. Until the ping itself is acknowledged, every acknowledgement counts for that bound like a byte
/// from the peer. Later acknowledgements do not count, because the peer's kernel sends them even when its program has
/// stopped.
public struct HeartbeatConfiguration: Sendable, Hashable {
    /// How long the peer may be silent before a ping is sent. Default: 30 s, below the idle timeouts of common NATs and
    /// load balancers, of which 60 s is the shortest usual one. From 1 ms to 365 days.
    public var interval = Duration.seconds(30)

    /// How long a ping may remain unanswered. Any byte counts as an answer. Default: 10 s, enough for several
    /// retransmissions of a lost segment. From 1 ms to 365 days.
    ///
    /// Over TCP, the kernel is told to wait at most a quarter of this time, but at least 1 s, before it retransmits
    /// unacknowledged bytes (`TCP_RTO_MAX_MS`, since Linux 6.15). By default it doubles that wait up to two minutes.
    /// Before Linux 6.15 it is only asked not to double the wait for the first six times while few bytes are on their
    /// way (`TCP_THIN_LINEAR_TIMEOUTS`); with BBR for congestion control it doubles the wait nevertheless. Then a live
    /// peer may be given up when a fifth of the packets is lost.
    public var timeout = Duration.seconds(10)

    /// The number of unanswered pings in a row after which the peer counts as gone. Default: 3, so that lost packets
    /// alone do not cut a connection. At least 1.
    public var allowedMisses = 3

    /// Makes a configuration with the default values.
    public init() {}
}
