/// The liveness of one connection, on either side: when to ask the peer for a sign of life, and when it counts as dead.
///
/// Whoever reads the connection's bytes drives it. Per read only the time is to be noted: it is enough to report the
/// latest one to `timerFired`. The timer is to be set to `deadline` at the beginning, after `timerFired`, and after
/// `probe`, which can bring the deadline forward; after signs of life it may stand, since coming early does no harm.
///
/// A ping stands behind what was written before it, and TCP delivers in order: where packets are lost, or the peer
/// reads slowly, it may be on its way for minutes. So where the driver can tell what the peer's TCP has acknowledged, a
/// timeout in which that became more is no miss while the question is on its way. Once it has arrived, acknowledgements
/// prove nothing: the kernel of a program that is stopped goes on with them.
package struct Heartbeat: Sendable {
    private enum State {
        /// The last sign of life is recent enough. Can go to: probing.
        case listening
        /// An answer is awaited. Can go to: listening.
        case probing(Series)
    }

    /// Pings without an answer.
    private struct Series {
        /// When the first one was sent.
        let first: MonotonicTime
        /// When the timeout under way ends.
        var deadline: MonotonicTime
        var misses: Int
        /// When a timeout came last in which the question had come further.
        var lastProgress: MonotonicTime?
        /// Nil where nobody can tell what the peer has acknowledged.
        var question: Question?

        mutating func hasProgressed(_ acknowledged: () -> UInt64?) -> Bool {
            guard question != nil, let total = acknowledged() else { return false }
            return question?.hasProgressed(acknowledged: total) ?? false
        }
    }

    /// The way of a series' first ping. Those of the later ones tell nothing more: they come after it.
    private struct Question {
        /// Where it ends in the stream of bytes; nil while it is not written.
        var end: UInt64?
        /// How much was acknowledged when the timeout under way began.
        var acknowledged: UInt64
        /// Whether the timeout under way is the one that began with the ping.
        var isNew = true

        /// A timeout has come, and so many bytes are acknowledged. Tells whether the question came further in it.
        ///
        /// Not if it has come all the way in the timeout that began with it, which was there for the answer, too: so an
        /// idle connection's bound remains what it is.
        mutating func hasProgressed(acknowledged total: UInt64) -> Bool {
            defer {
                acknowledged = total
                isNew = false
            }
            return total > acknowledged && !hasArrived(acknowledged) && !(isNew && hasArrived(total))
        }

        private func hasArrived(_ acknowledged: UInt64) -> Bool {
            end.map { acknowledged >= $0 } ?? false
        }
    }

    private let interval: Duration
    private let timeout: Duration
    private let allowedMisses: Int
    private var state = State.listening
    private var lastPingNumber: UInt64 = 0
    /// How many times in all a ping's timeout has come without a sign of life.
    package private(set) var missCount = 0
    /// When the peer last gave a sign of life; at first, when the connection was made.
    package private(set) var lastLife: MonotonicTime

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
        case .probing(let series): series.deadline
        }
    }

    /// Bytes have come in, the last ones at `time`. What was known already changes nothing.
    package mutating func received(at time: MonotonicTime) {
        guard time >= lastLife else { return }
        lastLife = time
        // What came before the question is no answer to it.
        if case .probing(let series) = state, time >= series.first { state = .listening }
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

    /// The ping is about to be written. `acknowledged` tells how many bytes the peer's TCP has acknowledged by now; nil
    /// where nobody can.
    package mutating func pingQueued(acknowledged: () -> UInt64?) {
        guard case .probing(var series) = state, series.question == nil else { return }
        series.question = acknowledged().map { Question(acknowledged: $0) }
        state = .probing(series)
    }

    /// All pings that were queued are written. `total` tells how many bytes that were since the connection was made, as
    /// the peer's TCP counts them; nil where nobody can. It is called only when that is of interest.
    package mutating func wrote(total: () -> UInt64?) {
        guard case .probing(var series) = state, series.question != nil, series.question?.end == nil else { return }
        series.question?.end = total()
        state = .probing(series)
    }

    /// Whether a question is on its way to the peer and came further since `time`, or since the timeout under way
    /// began.
    package func isPingProgressing(since time: MonotonicTime, acknowledged: () -> UInt64?) -> Bool {
        guard case .probing(var series) = state else { return false }
        if let lastProgress = series.lastProgress, lastProgress > time { return true }
        return series.hasProgressed(acknowledged)
    }

    /// Time has come, maybe too early or late.
    ///
    /// - Parameters:
    ///   - lastInboundAt: when bytes last came in, nil when none ever did.
    ///   - acknowledged: tells how many bytes the peer's TCP has acknowledged so far; asked only when a timeout has
    ///     come.
    package mutating func timerFired(
        lastInboundAt: MonotonicTime?,
        now: MonotonicTime,
        acknowledged: () -> UInt64? = { nil }
    ) -> TimerAction {
        if let lastInboundAt { received(at: min(lastInboundAt, now)) }
        guard now >= deadline else { return .none }
        switch state {
        case .listening:
            return .sendPing(number: startProbing(now: now))
        case .probing(let series) where now - series.deadline > interval:
            // The machine slept: an answer had no chance to be read, so the question is asked anew.
            return .sendPing(number: startProbing(now: now))
        case .probing(var series):
            let hasProgressed = series.hasProgressed(acknowledged)
            if hasProgressed { series.lastProgress = now }
            series.misses = hasProgressed ? 0 : series.misses + 1
            missCount += hasProgressed ? 0 : 1
            guard series.misses < allowedMisses else { return .timedOut }
            series.deadline = now + timeout
            state = .probing(series)
            return hasProgressed ? .none : .sendPing(number: nextPing())
        }
    }

    /// There is a reason to doubt the connection: asks for a sign of life now. Returns the number of the ping to send.
    ///
    /// While an answer is awaited already, this asks once more but gives no more time, so that doubts in quick
    /// succession do not keep a dead connection alive.
    package mutating func probe(now: MonotonicTime) -> UInt64 {
        switch state {
        case .listening:
            return startProbing(now: now)
        case .probing:
            return nextPing()
        }
    }

    private mutating func startProbing(now: MonotonicTime) -> UInt64 {
        state = .probing(Series(first: now, deadline: now + timeout, misses: 0))
        return nextPing()
    }

    private mutating func nextPing() -> UInt64 {
        lastPingNumber += 1
        return lastPingNumber
    }
}
