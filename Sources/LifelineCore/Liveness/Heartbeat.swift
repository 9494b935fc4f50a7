/// The liveness of one connection, on either side: when to ask the peer for a sign of life, and when it counts as dead.
///
/// The reader of the connection's bytes drives it. For each read, the driver only notes the time, and reports the
/// latest one to `timerFired`. It sets the timer to `deadline` at the beginning, after `timerFired`, and after `probe`,
/// which can bring the deadline forward. After signs of life the timer may stay as it is, because firing early does no
/// harm.
///
/// TCP delivers a ping after all bytes written before it, so the ping may take minutes when packets are lost or the
/// peer reads slowly. If the driver knows how many bytes the peer's TCP has acknowledged, a timeout during which that
/// number grew is not a miss while the ping is on its way. Once the ping has arrived, acknowledgements prove nothing:
/// the kernel of a stopped program goes on with them.
package struct Heartbeat: Sendable {
    private enum State {
        /// The last sign of life is recent enough. Can go to: probing.
        case listening
        /// A ping waits for its answer. Can go to: listening.
        case probing(Series)
    }

    /// Pings without an answer.
    private struct Series {
        /// When the first one was sent.
        let first: MonotonicTime
        /// The end of the present timeout.
        var deadline: MonotonicTime
        var misses: Int
        /// The end of the last timeout in which the ping made progress.
        var lastProgress: MonotonicTime?
        /// Nil if the acknowledged bytes are unknown.
        var question: Question?

        mutating func hasProgressed(_ acknowledged: () -> UInt64?) -> Bool {
            guard question != nil, let total = acknowledged() else { return false }
            return question?.hasProgressed(acknowledged: total) ?? false
        }
    }

    /// The progress of a series' first ping. Later pings come after it, and tell nothing more.
    private struct Question {
        /// The end of the ping in the byte stream; nil while it is not written.
        var end: UInt64?
        /// The number of acknowledged bytes when the present timeout began.
        var acknowledged: UInt64
        /// Whether the present timeout is the one that began with the ping.
        var isNew = true

        /// Notes a timeout and the number of acknowledged bytes. Returns whether the ping made progress in it.
        ///
        /// A ping that has fully arrived within its first timeout made no progress, because that timeout was also for
        /// the answer. So the bound of an idle connection is not extended.
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
    /// The number of ping timeouts without a sign of life.
    package private(set) var missCount = 0
    /// The time of the peer's last sign of life; at first, that of the connection.
    package private(set) var lastLife: MonotonicTime

    package init(_ configuration: HeartbeatConfiguration, connectedAt: MonotonicTime) {
        interval = configuration.interval.clamped(atLeast: .milliseconds(1))
        timeout = configuration.timeout.clamped(atLeast: .milliseconds(1))
        allowedMisses = max(configuration.allowedMisses, 1)
        lastLife = connectedAt
    }

    /// The time at which to call `timerFired`.
    package var deadline: MonotonicTime {
        switch state {
        case .listening: lastLife + interval
        case .probing(let series): series.deadline
        }
    }

    /// Notes received bytes, the last ones at `time`. An earlier time than the known one changes nothing.
    package mutating func received(at time: MonotonicTime) {
        guard time >= lastLife else { return }
        lastLife = time
        // Bytes received before the ping do not answer it.
        if case .probing(let series) = state, time >= series.first { state = .listening }
    }

    /// The step when a deadline has passed.
    package enum TimerAction: Equatable {
        /// Send a ping with this number.
        case sendPing(number: UInt64)
        /// The peer counts as dead, and was alive until `lastLife`: give up the connection.
        case timedOut
        /// Nothing: wait for the new deadline.
        case none
    }

    /// Notes that the ping is about to be written. `acknowledged` returns the number of bytes that the peer's TCP has
    /// acknowledged by now; nil if unknown.
    package mutating func pingQueued(acknowledged: () -> UInt64?) {
        guard case .probing(var series) = state, series.question == nil else { return }
        series.question = acknowledged().map { Question(acknowledged: $0) }
        state = .probing(series)
    }

    /// Notes that all queued pings are written. `total` returns the number of bytes written since the connection was
    /// made, as the peer's TCP counts them; nil if unknown. It is called only when needed.
    package mutating func wrote(total: () -> UInt64?) {
        guard case .probing(var series) = state, series.question != nil, series.question?.end == nil else { return }
        series.question?.end = total()
        state = .probing(series)
    }

    /// Whether a ping is on its way to the peer and has made progress since `time`, or since the present timeout began.
    package func isPingProgressing(since time: MonotonicTime, acknowledged: () -> UInt64?) -> Bool {
        guard case .probing(var series) = state else { return false }
        if let lastProgress = series.lastProgress, lastProgress > time { return true }
        return series.hasProgressed(acknowledged)
    }

    /// Handles the timer, which may fire too early or late.
    ///
    /// - Parameters:
    ///   - lastInboundAt: the time of the last received bytes; nil when there were none.
    ///   - acknowledged: returns the number of bytes that the peer's TCP has acknowledged so far; called only after a
    ///     timeout.
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
            // The machine slept, so an answer could not be read: ping again.
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

    /// Asks for a sign of life now, because there is a reason to doubt the connection. Returns the number of the ping
    /// to send.
    ///
    /// While a ping already waits for its answer, this pings once more but gives no more time, so that doubts in quick
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
