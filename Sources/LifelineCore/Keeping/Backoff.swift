/// How many attempts to connect are left, and how long to wait before the next one.
package struct Backoff: Sendable {
    /// The shortest delay after the first goodbye, in nanoseconds: 0.1 s. Another server takes the client meanwhile.
    private static let firstGoodbyeDelay = 1e8

    private let initialDelay: Double
    private let factor: Double
    private let jitter: Double
    private let cap: Double
    private let maximumAttempts: Int
    private var generator: SplitMix64
    /// The next retry's delay before jitter, in nanoseconds.
    private var baseDelay: Double
    /// The shortest delay after the next goodbye, before jitter, in nanoseconds.
    private var goodbyeDelay: Double
    /// Attempts begun since the budget was fresh.
    package private(set) var attemptsUsed = 0

    package init(_ configuration: BackoffConfiguration, seed: UInt64) {
        let cap = Double(configuration.cap.clamped(atLeast: .milliseconds(1)).saturatedNanoseconds)
        let initial = Double(configuration.initialDelay.clamped(atLeast: .milliseconds(1)).saturatedNanoseconds)
        self.cap = cap
        self.initialDelay = min(initial, cap)
        // Written so that NaN fails the comparison.
        self.factor = configuration.factor >= 1 ? configuration.factor : 1
        self.jitter = configuration.jitter >= 0 ? min(configuration.jitter, 1) : 0
        self.maximumAttempts = max(configuration.maximumAttempts ?? .max, 1)
        self.generator = SplitMix64(seed: seed)
        self.baseDelay = initialDelay
        self.goodbyeDelay = min(Self.firstGoodbyeDelay, initialDelay)
    }

    /// An attempt begins.
    package mutating func attemptStarted() {
        if attemptsUsed < .max { attemptsUsed += 1 }
    }

    /// All attempts are to be had again.
    package mutating func refill() {
        attemptsUsed = 0
        baseDelay = initialDelay
        goodbyeDelay = min(Self.firstGoodbyeDelay, initialDelay)
    }

    /// What to do when the last attempt has failed or its connection is lost.
    package enum NextAction: Equatable {
        /// Connect at once: the budget is fresh.
        case connect
        /// Connect after this time.
        case wait(Duration)
        /// Give up: all attempts are used.
        case giveUp
    }

    /// The last attempt has failed, or its connection is lost.
    package mutating func attemptEnded() -> NextAction {
        if attemptsUsed == 0 { return .connect }
        if attemptsUsed >= maximumAttempts { return .giveUp }
        defer { baseDelay = min(baseDelay * factor, cap) }
        return .wait(withJitter(baseDelay))
    }

    /// The last attempt has ended with a goodbye of the peer, which is no failure, so that it does not count. Returns
    /// the shortest delay before the next one. It grows, as a peer may say goodbye to every connection.
    package mutating func attemptDismissed() -> Duration {
        if attemptsUsed == 0 { return .zero }
        attemptsUsed -= 1
        defer { goodbyeDelay = min(goodbyeDelay * factor, cap) }
        return withJitter(goodbyeDelay)
    }

    private mutating func withJitter(_ delay: Double) -> Duration {
        // At most twice 365 days, so that it fits.
        .nanoseconds(Int64(delay * (1 + Double.random(in: -jitter...jitter, using: &generator))))
    }
}
