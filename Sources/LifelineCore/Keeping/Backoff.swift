/// Counts the remaining attempts to connect, and computes the delay before the next one.
package struct Backoff: Sendable {
    /// The shortest delay after the first goodbye, in nanoseconds: 0.1 s. By then another server is ready for the
    /// client.
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
    /// The number of attempts begun since the budget was reset.
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

    /// Notes that an attempt begins.
    package mutating func attemptStarted() {
        if attemptsUsed < .max { attemptsUsed += 1 }
    }

    /// Resets the budget of attempts.
    package mutating func refill() {
        attemptsUsed = 0
        baseDelay = initialDelay
        goodbyeDelay = min(Self.firstGoodbyeDelay, initialDelay)
    }

    /// The next step after an attempt has failed or its connection is lost.
    package enum NextAction: Equatable {
        /// Connect at once: the budget is unused.
        case connect
        /// Connect after this time.
        case wait(Duration)
        /// Give up: all attempts are used.
        case giveUp
    }

    /// Notes that the last attempt has failed, or its connection is lost.
    package mutating func attemptEnded() -> NextAction {
        if attemptsUsed == 0 { return .connect }
        if attemptsUsed >= maximumAttempts { return .giveUp }
        defer { baseDelay = min(baseDelay * factor, cap) }
        return .wait(withJitter(baseDelay))
    }

    /// Notes that the last attempt ended with the peer's goodbye. That is not a failure, so the attempt does not count.
    /// Returns the shortest delay before the next one. The delay grows, because a peer may say goodbye to every
    /// connection.
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
