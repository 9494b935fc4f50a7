// Events of the present attempt or connection.
extension ConnectionManager {
    /// Notes that the attempt succeeded: there is a connection.
    package mutating func connected(_ id: ConnectionID, now: MonotonicTime) -> [Action] {
        let now = observe(now)
        switch machine {
        case .connecting(id):
            return [move(to: .ready(id, since: now), TransitionReason(.connected), now: now)]
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// Notes that the attempt failed.
    package mutating func connectFailed(
        _ id: ConnectionID,
        _ error: ConnectionError,
        now: MonotonicTime
    ) -> [Action] {
        connectionEnded(id, .connectFailed(error), now: now)
    }

    /// Notes that the attempt or connection ended without an action that gave it up: the peer closed it, it was reset,
    /// the peer violated the protocol, the heartbeat found the peer dead, or it was drained.
    ///
    /// - Parameter lastSignOfLife: the time at which the peer was last known to be alive, if the heartbeat found it
    ///   dead. The connection has lasted until then, otherwise until now. So a peer that accepts and stays silent uses
    ///   up the attempts, instead of being tried for ever.
    package mutating func connectionEnded(
        _ id: ConnectionID,
        _ reason: TransitionReason,
        lastSignOfLife: MonotonicTime? = nil,
        now: MonotonicTime
    ) -> [Action] {
        let now = observe(now)
        switch machine {
        case .connecting(id):
            return retryOrGiveUp(after: reason, now: now)
        case .ready(id, let since):
            // The heartbeat may have begun a little before `connected` was reported.
            let stoodUntil = max(since, min(lastSignOfLife ?? now, now))
            if stoodUntil - since >= stabilityPeriod { backoff.refill() }
            return retryOrGiveUp(after: reason, now: now)
        case .draining(id):
            return disconnect(to: .closed, reason, now: now)
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm.
    package mutating func timerFired(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        switch machine {
        case .backingOff(let until):
            return now < until ? [] : connect(TransitionReason(.retryDue), now: now)
        case .idle, .waitingForNetwork, .connecting, .ready, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// Notes that the peer says goodbye, and wants no attempt before the end of a pause. The network's return and
    /// `reconnectRequested` end the pause early.
    package mutating func pauseRequested(for pause: Duration, now: MonotonicTime) {
        let end = observe(now) + pause
        switch machine {
        case .connecting, .ready:
            pauseEnd = end
        case .backingOff(let until):
            // The connection's end was noticed first, and counts as a failure.
            machine = .backingOff(until: max(until, end))
        case .idle, .waitingForNetwork, .draining, .gaveUp, .closed:
            break
        }
    }
}
