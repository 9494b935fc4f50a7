/// One step of a client's connection from a state to another.
public struct ConnectionTransition: Sendable, Equatable {
    /// The step's number: 1, 2, 3 and so on, without gaps.
    public let number: UInt64
    /// The time of the step.
    public let time: MonotonicTime
    /// The state before: the one that the step before led to.
    public let from: ConnectionState
    /// The state after, which always differs from the one before.
    public let to: ConnectionState
    /// The reason for the step.
    public let reason: TransitionReason
    /// The number of the present attempt (connecting, ready), or the number of attempts used (backing off, given up). 0
    /// in the other states.
    public let attempt: Int
    /// The time of the next attempt, in `backingOff`.
    public let nextAttempt: MonotonicTime?

    package init(
        number: UInt64,
        time: MonotonicTime,
        from: ConnectionState,
        to: ConnectionState,
        reason: TransitionReason,
        attempt: Int = 0,
        nextAttempt: MonotonicTime? = nil
    ) {
        self.number = number
        self.time = time
        self.from = from
        self.to = to
        self.reason = reason
        self.attempt = attempt
        self.nextAttempt = nextAttempt
    }
}

extension ConnectionTransition: CustomStringConvertible {
    /// One line: `#2 connecting → backingOff: connectFailed (…), attempt 1, next attempt in 1.1 seconds`.
    public var description: String {
        var text = "#\(number) \(from) → \(to): \(reason)"
        if attempt > 0 { text += ", attempt \(attempt)" }
        if let nextAttempt { text += ", next attempt in \(nextAttempt - time)" }
        return text
    }
}
