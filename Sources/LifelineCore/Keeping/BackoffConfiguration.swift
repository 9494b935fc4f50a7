/// How a client tries to connect again.
///
/// The delay before the n-th retry is `initialDelay × factorⁿ⁻¹`, at most `cap`, plus or minus a random share of it. A
/// value out of range counts as the nearest one in range.
public struct BackoffConfiguration: Sendable, Hashable {
    /// The delay before the first retry. Default: 1 s, longer than a restart of a process takes. At least 1 ms, to
    /// prevent a busy loop, at most 365 days.
    public var initialDelay = Duration.seconds(1)

    /// The factor by which each delay is longer than the one before. Default: 2. At least 1.
    public var factor = 2.0

    /// The share by which a delay may be shorter or longer, so that clients that lost the same server do not return at
    /// the same time. Default: 0.2. From 0 to 1.
    public var jitter = 0.2

    /// The longest delay, before jitter. Default: 30 s, about as long as users wait before they act themselves. At
    /// least 1 ms, at most 365 days.
    public var cap = Duration.seconds(30)

    /// The number of attempts in a row without a stable connection between them; nil for no limit. Default: 4, within
    /// about 7 s. At least 1. An attempt whose connection ends with the server's goodbye does not count.
    ///
    /// Giving up is a state, not an end: the network's return or a call of `reconnect()` starts again with all
    /// attempts.
    public var maximumAttempts: Int? = 4

    /// How long a connection has to last before all attempts are available again, so that a peer that accepts and drops
    /// connections is not flooded with attempts. Default: 10 s. At least the delay before the first retry, which `cap`
    /// bounds, at most 365 days.
    ///
    /// A connection that the heartbeat found dead has lasted until its last sign of life.
    public var stabilityPeriod = Duration.seconds(10)

    /// Makes a configuration with the default values.
    public init() {}
}
