/// One step of a client's connection from a state to another.
public struct ConnectionTransition: Sendable, Equatable {
    /// The step's number: 1, 2, 3 and so on, without gaps.
    public let number: UInt64
    /// When it was made.
    public let time: MonotonicTime
    /// The state before: the one that the step before led to.
    public let from: ConnectionState
    /// The state after. It is the same as before in no step.
    public let to: ConnectionState
    /// Why it was made.
    public let reason: TransitionReason
    /// Which attempt of the budget this is (connecting, ready), or how many of the budget are used (backing off, given
    /// up). 0 in the other states.
    public let attempt: Int
    /// When the next attempt is due, in `backingOff`.
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
