/// How a client tries to connect again.
///
/// The delay before the n-th retry is `initialDelay × factorⁿ⁻¹`, at most `cap`, plus or minus a random share of it.
/// What is out of range counts as the nearest value in range.
public struct BackoffConfiguration: Sendable, Hashable {
    /// The delay before the first retry. Default: 1 s, over what a restart of a process takes. At least 1 ms, so that
    /// nothing is tried in a busy loop, at most 365 days.
    public var initialDelay = Duration.seconds(1)

    /// By how much each delay is longer than the one before. Default: 2. At least 1.
    public var factor = 2.0

    /// The share of a delay that it may be shorter or longer by, so that clients that lost one server do not return at
    /// one time. Default: 0.2. From 0 to 1.
    public var jitter = 0.2

    /// The longest delay, before jitter. Default: 30 s, about as long as a user waits before doing something himself.
    /// At least 1 ms, at most 365 days.
    public var cap = Duration.seconds(30)

    /// How many attempts are made in a row without a stable connection between them; nil: without end. Default: 4,
    /// over about 7 s. At least 1. One whose connection ends with the server's goodbye does not count.
    ///
    /// Giving up is a state, not an end: the network's return or a wish to reconnect starts with a fresh budget.
    public var maximumAttempts: Int? = 4

    /// How long a connection has to stand before the budget is fresh again, so that a peer that accepts and drops is
    /// not hammered. Default: 10 s. At least the delay before the first retry, which `cap` bounds, at most 365 days.
    ///
    /// A connection that the heartbeat found dead has stood until its last sign of life.
    public var stabilityPeriod = Duration.seconds(10)

    /// Makes a configuration with the default values.
    public init() {}
}
