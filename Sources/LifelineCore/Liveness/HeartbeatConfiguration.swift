/// When a silent peer is asked for a sign of life, and when it counts as gone.
///
/// A dead peer is noticed at most `interval + allowedMisses × timeout` after its last byte: 60 s by default. Where the
/// timeout is longer than the interval, it counts in the place of the interval. What is out of range counts as the
/// nearest value in range.
///
/// Over TCP, a ping may stand behind bytes that the peer's kernel has not acknowledged, because packets are lost or the
/// peer reads slowly. Until the ping itself is acknowledged, every acknowledgement counts for that bound as the peer's
/// last byte does. What the peer's kernel acknowledges afterwards does not: it goes on with that when the program has
/// stopped.
public struct HeartbeatConfiguration: Sendable, Hashable {
    /// How long nothing may have come in before a ping is sent. Default: 30 s, below the idle timeouts of common
    /// NATs and load balancers, of which 60 s is the shortest usual one. From 1 ms to 365 days.
    public var interval = Duration.seconds(30)

    /// How long a ping may remain unanswered. Any byte counts as an answer. Default: 10 s, which several
    /// retransmissions of a lost segment fit into. From 1 ms to 365 days.
    ///
    /// Over TCP, the kernel is told to wait no longer than a quarter of it, but 1 s at least, until it sends again what
    /// was not acknowledged (`TCP_RTO_MAX_MS`, since Linux 6.15): left to itself it doubles that wait up to two
    /// minutes. Before Linux 6.15 it is only asked not to double the wait for the first six times while little is on
    /// its way (`TCP_THIN_LINEAR_TIMEOUTS`), and with BBR for congestion control it does so all the same: a peer that
    /// lives may be given up where a fifth of the packets is lost.
    public var timeout = Duration.seconds(10)

    /// After how many unanswered pings in a row the peer counts as gone. Default: 3, so that lost packets alone do not
    /// cut a connection. At least 1.
    public var allowedMisses = 3

    /// Makes a configuration with the default values.
    public init() {}
}
