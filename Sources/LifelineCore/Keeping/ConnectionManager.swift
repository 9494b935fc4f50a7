/// The decisions about a client's connection: when to connect, when to try again, when to give up.
///
/// It uses no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, runs the
/// returned actions in order, and calls `timerFired` when `nextDeadline` has passed. The connection itself watches
/// whether its peer is alive (see `Heartbeat`), and a dead peer is reported as the connection's end.
///
/// - Attempts have numbers. Reports about other attempts than the present one are late, and are ignored.
/// - A time before the latest one reported counts as the latest one.
/// - `closed` is final: every later event is ignored.
package struct ConnectionManager: Sendable {
    /// The number of an attempt to connect and of the connection that it leads to: 1, 2, 3 and so on.
    package typealias ConnectionID = UInt64

    /// `ConnectionState` with the data of each state. The transitions are described there.
    enum State {
        case idle
        case waitingForNetwork
        case connecting(ConnectionID)
        case ready(ConnectionID, since: MonotonicTime)
        case backingOff(until: MonotonicTime)
        case draining(ConnectionID)
        case gaveUp
        case closed
    }

    let stabilityPeriod: Duration
    var machine = State.idle
    var hasNetwork: Bool
    var backoff: Backoff
    /// The end of the pause that the peer has asked for in its goodbye; nil without a goodbye.
    var pauseEnd: MonotonicTime?
    private var latest: MonotonicTime?
    private var lastID: ConnectionID = 0
    private var transitionCount: UInt64 = 0

    /// Makes a manager that waits for `start`.
    ///
    /// - Parameters:
    ///   - seed: the seed for the jitter of delays.
    ///   - hasNetwork: whether the peer can be reached, as far as is known. It stays true for a peer that needs no
    ///     network.
    package init(backoff: BackoffConfiguration, seed: UInt64, hasNetwork: Bool) {
        self.backoff = Backoff(backoff, seed: seed)
        // A connection that was stable is followed by an attempt at once.
        self.stabilityPeriod = max(backoff.stabilityPeriod, min(backoff.initialDelay, backoff.cap))
            .clamped(atLeast: .milliseconds(1))
        self.hasNetwork = hasNetwork
    }

    /// The state of the connection.
    package var state: ConnectionState {
        switch machine {
        case .idle: .idle
        case .waitingForNetwork: .waitingForNetwork
        case .connecting: .connecting
        case .ready: .ready
        case .backingOff: .backingOff
        case .draining: .draining
        case .gaveUp: .gaveUp
        case .closed: .closed
        }
    }

    /// The present attempt or connection.
    package var connectionID: ConnectionID? {
        switch machine {
        case .connecting(let id), .ready(let id, _), .draining(let id): id
        case .idle, .waitingForNetwork, .backingOff, .gaveUp, .closed: nil
        }
    }

    /// The time at which to call `timerFired`; nil to wait for another event.
    package var nextDeadline: MonotonicTime? {
        switch machine {
        case .backingOff(let until): until
        // The connection itself limits the time for connecting, silence and draining.
        case .idle, .waitingForNetwork, .connecting, .ready, .draining, .gaveUp, .closed: nil
        }
    }

    /// A step for the driver. A transition comes first, so that observers see every step in order, even when running an
    /// action leads to the next event.
    package enum Action: Equatable, Sendable {
        /// Tell observers about this step.
        case transition(ConnectionTransition)
        /// Give up this attempt or connection at once, and drop unwritten bytes. Its end need not be reported.
        case abort(ConnectionID, TransitionReason)
        /// Begin to connect; report `connected` or `connectFailed`.
        case connect(ConnectionID)
        /// Write accepted messages, close in order, and report `connectionEnded`.
        case drain(ConnectionID)
        /// There is a reason to doubt this connection: ask the peer for a sign of life, if possible.
        case probe(ConnectionID)
    }
}

// Helpers of several events.
extension ConnectionManager {
    /// Returns the time to use, which never goes back.
    mutating func observe(_ now: MonotonicTime) -> MonotonicTime {
        let time = max(now, latest ?? now)
        latest = time
        return time
    }

    /// Moves to a state and returns the transition.
    mutating func move(to next: State, _ reason: TransitionReason, now: MonotonicTime) -> Action {
        let from = state
        machine = next
        transitionCount += 1
        var attempt = 0
        var nextAttempt: MonotonicTime?
        switch next {
        case .connecting, .ready, .gaveUp:
            attempt = backoff.attemptsUsed
        case .backingOff(let until):
            attempt = backoff.attemptsUsed
            nextAttempt = until
        case .idle, .waitingForNetwork, .draining, .closed:
            break
        }
        return .transition(
            ConnectionTransition(
                number: transitionCount,
                time: now,
                from: from,
                to: state,
                reason: reason,
                attempt: attempt,
                nextAttempt: nextAttempt
            )
        )
    }

    /// Begins the next attempt; gives up `abandoned` before.
    mutating func connect(
        _ reason: TransitionReason,
        now: MonotonicTime,
        insteadOf abandoned: ConnectionID? = nil
    ) -> [Action] {
        lastID += 1
        pauseEnd = nil
        backoff.attemptStarted()
        let transition = move(to: .connecting(lastID), reason, now: now)
        guard let abandoned else { return [transition, .connect(lastID)] }
        return [transition, .abort(abandoned, reason), .connect(lastID)]
    }

    /// Moves to a state without a connection; gives up `abandoned`.
    mutating func disconnect(
        to next: State,
        _ reason: TransitionReason,
        now: MonotonicTime,
        abandoning abandoned: ConnectionID? = nil
    ) -> [Action] {
        let transition = move(to: next, reason, now: now)
        guard let abandoned else { return [transition] }
        return [transition, .abort(abandoned, reason)]
    }

    /// Tries again, now or later, or gives up, after a failed attempt or a lost connection while there is a network. A
    /// goodbye of the peer is not a failure: the next attempt is made after the requested pause.
    mutating func retryOrGiveUp(after reason: TransitionReason, now: MonotonicTime) -> [Action] {
        if reason.isFatal { return disconnect(to: .gaveUp, reason, now: now) }
        if let pauseEnd {
            let due = max(pauseEnd, now + backoff.attemptDismissed())
            return due > now
                ? disconnect(to: .backingOff(until: due), reason, now: now) : connect(reason, now: now)
        }
        switch backoff.attemptEnded() {
        case .connect:
            return connect(reason, now: now)
        case .wait(let delay):
            return disconnect(to: .backingOff(until: now + delay), reason, now: now)
        case .giveUp:
            let last = TransitionReason(.attemptsUsedUp, error: reason.asError)
            return disconnect(to: .gaveUp, last, now: now)
        }
    }
}
