/// The liveness of one connection, on either side: when to ask the peer for a sign of life, and when it counts as dead.
///
/// Whoever reads the connection's bytes drives it. Per read only the time is to be noted: it is enough to report the
/// latest one to `timerFired`. The timer is to be set to `deadline` at the beginning, after `timerFired`, and after
/// `probe`, which can bring the deadline forward; after signs of life it may stand, since coming early does no harm.
package struct Heartbeat: Sendable {
    private enum State {
        /// The last sign of life is recent enough. Can go to: probing.
        case listening
        /// A ping waits for its answer. `first` is when the first one of this series was sent, `deadline` when the
        /// newest one counts as missed. Can go to: listening.
        case probing(first: MonotonicTime, deadline: MonotonicTime, misses: Int)
    }

    private let interval: Duration
    private let timeout: Duration
    private let allowedMisses: Int
    private var state = State.listening
    private var lastPingNumber: UInt64 = 0
    private var unansweredPing: (number: UInt64, time: MonotonicTime)?
    /// How many times in all a ping's time-out has come without a sign of life.
    package private(set) var missCount = 0
    /// When the peer last gave a sign of life; at first, when the connection was made.
    package private(set) var lastLife: MonotonicTime
    /// How long the answer to the last answered ping took; nil before. A ping that was followed by another one before
    /// its answer came is not measured.
    package private(set) var roundTripTime: Duration?

    package init(_ configuration: HeartbeatConfiguration, connectedAt: MonotonicTime) {
        interval = configuration.interval.clamped(atLeast: .milliseconds(1))
        timeout = configuration.timeout.clamped(atLeast: .milliseconds(1))
        allowedMisses = max(configuration.allowedMisses, 1)
        lastLife = connectedAt
    }

    /// When `timerFired` is to be called.
    package var deadline: MonotonicTime {
        switch state {
        case .listening: lastLife + interval
        case .probing(_, let deadline, _): deadline
        }
    }

    /// Bytes have come in, the last ones at `time`. What was known already changes nothing.
    package mutating func received(at time: MonotonicTime) {
        guard time >= lastLife else { return }
        lastLife = time
        // What came before the question is no answer to it.
        if case .probing(let first, _, _) = state, time >= first { state = .listening }
    }

    /// The peer answered a ping. Like any byte, even a late or unknown answer is a sign of life.
    package mutating func receivedPong(number: UInt64, now: MonotonicTime) {
        if let ping = unansweredPing, ping.number == number {
            roundTripTime = max(now - ping.time, .zero)
            unansweredPing = nil
        }
        received(at: now)
    }

    /// What to do when a deadline has come.
    package enum TimerAction: Equatable {
        /// Send a ping with this number.
        case sendPing(number: UInt64)
        /// The peer counts as dead, and has been alive until `lastLife`: give the connection up.
        case timedOut
        /// Nothing: wait for the new deadline.
        case none
    }

    /// Time has come, maybe too early or late. `lastInboundAt` is when bytes last came in, nil when none ever did.
    package mutating func timerFired(lastInboundAt: MonotonicTime?, now: MonotonicTime) -> TimerAction {
        if let lastInboundAt { received(at: min(lastInboundAt, now)) }
        guard now >= deadline else { return .none }
        switch state {
        case .listening:
            return ping(first: now, misses: 0, now: now)
        case .probing(_, let deadline, _) where now - deadline > interval:
            // The machine slept: an answer had no chance to be read, so the question is asked anew.
            return ping(first: now, misses: 0, now: now)
        case .probing(let first, _, let misses):
            missCount += 1
            guard misses + 1 < allowedMisses else { return .timedOut }
            return ping(first: first, misses: misses + 1, now: now)
        }
    }

    /// There is a reason to doubt the connection: asks for a sign of life now. Returns the number of the ping to send.
    ///
    /// While an answer is awaited already, this asks once more but gives no more time, so that doubts in quick succession
    /// do not keep a dead connection alive.
    package mutating func probe(now: MonotonicTime) -> UInt64 {
        switch state {
        case .listening:
            state = .probing(first: now, deadline: now + timeout, misses: 0)
        case .probing:
            break
        }
        return nextPing(now: now)
    }

    private mutating func ping(first: MonotonicTime, misses: Int, now: MonotonicTime) -> TimerAction {
        state = .probing(first: first, deadline: now + timeout, misses: misses)
        return .sendPing(number: nextPing(now: now))
    }

    private mutating func nextPing(now: MonotonicTime) -> UInt64 {
        lastPingNumber += 1
        unansweredPing = (lastPingNumber, now)
        return lastPingNumber
    }
}
