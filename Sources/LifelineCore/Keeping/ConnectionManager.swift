/// The decisions over a client's connection: when to connect, when to try again, when to give up.
///
/// It knows no sockets, clocks, timers or locks. A driver reports events with the time at which they happened, runs the
/// actions that they return, in order, and calls `timerFired` when `nextDeadline` has come. Whether the peer of a
/// connection is alive is found out where the connection is (see `Heartbeat`), and reported as its end when it is not.
///
/// - Attempts have numbers. What is reported of another one than the present one comes late, and is ignored.
/// - A time before the latest one reported counts as the latest one.
/// - `closed` is final: every later event is ignored.
package struct ConnectionManager: Sendable {
    /// The number of an attempt to connect and of the connection that it leads to: 1, 2, 3 and so on.
    package typealias ConnectionID = UInt64

    /// `ConnectionState` with what belongs to each; there it is said which leads to which.
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
    /// When the pause ends that the peer has asked for in its goodbye; nil: it has not said goodbye.
    var pauseEnd: MonotonicTime?
    private var latest: MonotonicTime?
    private var lastID: ConnectionID = 0
    private var transitionCount: UInt64 = 0

    /// Makes a manager that waits for `start`.
    ///
    /// - Parameters:
    ///   - seed: What the jitter of delays follows from.
    ///   - hasNetwork: Whether the peer can be reached as far as is known. It stays true for a peer that needs no
    ///     network.
    package init(backoff: BackoffConfiguration, seed: UInt64, hasNetwork: Bool) {
        self.backoff = Backoff(backoff, seed: seed)
        // A connection that was stable is followed by an attempt at once.
        self.stabilityPeriod = max(backoff.stabilityPeriod, min(backoff.initialDelay, backoff.cap))
            .clamped(atLeast: .milliseconds(1))
        self.hasNetwork = hasNetwork
    }

    /// Where the connection stands.
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

    /// The attempt or connection that there is now.
    package var connectionID: ConnectionID? {
        switch machine {
        case .connecting(let id), .ready(let id, _), .draining(let id): id
        case .idle, .waitingForNetwork, .backingOff, .gaveUp, .closed: nil
        }
    }

    /// When `timerFired` is to be called; nil: not until there was another event.
    package var nextDeadline: MonotonicTime? {
        switch machine {
        case .backingOff(let until): until
        // How long connecting, silence and draining may last is limited where the connection is.
        case .idle, .waitingForNetwork, .connecting, .ready, .draining, .gaveUp, .closed: nil
        }
    }

    /// What to do. Where there is a transition it comes first, so that observers see every step in order, even when
    /// running an action leads to the next event.
    package enum Action: Equatable, Sendable {
        /// Tell observers of this step.
        case transition(ConnectionTransition)
        /// Give this attempt or connection up at once, dropping what is not written. Nothing needs to be reported of
        /// it.
        case abort(ConnectionID, TransitionReason)
        /// Begin to connect; report `connected` or `connectFailed`.
        case connect(ConnectionID)
        /// Write what was accepted, close in order, and report `connectionEnded`.
        case drain(ConnectionID)
        /// There is a reason to doubt this connection: ask the peer for a sign of life, where it can be asked.
        case probe(ConnectionID)
    }
}

// What the events have in common.
extension ConnectionManager {
    /// The time to go by: time does not go back.
    mutating func observe(_ now: MonotonicTime) -> MonotonicTime {
        let time = max(now, latest ?? now)
        latest = time
        return time
    }

    /// Takes on a state and tells of it.
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

    /// Begins the next attempt; `abandoned` is given up before.
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

    /// Goes to a state in which there is no connection; `abandoned` is given up.
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

    /// An attempt failed or a connection was lost, while there is a network: tries again, now or later, or gives up.
    /// A goodbye of the peer is no failure: the next attempt is made when the pause ends that it has asked for.
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
