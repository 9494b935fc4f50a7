// Requests of the user.
extension ConnectionManager {
    /// Starts the client. Only the first call counts.
    package mutating func start(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        switch machine {
        case .idle:
            let reason = TransitionReason(.started)
            return hasNetwork ? connect(reason, now: now) : disconnect(to: .waitingForNetwork, reason, now: now)
        case .waitingForNetwork, .connecting, .ready, .backingOff, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// Makes a new connection at once, with all attempts available again. An attempt under way goes on.
    package mutating func reconnectRequested(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        let reason = TransitionReason(.reconnectRequested)
        switch machine {
        case .ready(let id, _):
            backoff.refill()
            return connect(reason, now: now, insteadOf: id)
        case .backingOff:
            backoff.refill()
            return connect(reason, now: now)
        case .gaveUp:
            backoff.refill()
            return hasNetwork ? connect(reason, now: now) : disconnect(to: .waitingForNetwork, reason, now: now)
        case .idle, .waitingForNetwork, .connecting, .draining, .closed:
            // The network's return resets the budget anyway.
            return []
        }
    }

    /// Closes in order; the second call closes at once.
    package mutating func closeRequested(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        let reason = TransitionReason(.closedByUser)
        switch machine {
        case .ready(let id, _):
            return [move(to: .draining(id), reason, now: now), .drain(id)]
        case .connecting(let id), .draining(let id):
            return disconnect(to: .closed, reason, now: now, abandoning: id)
        case .idle, .waitingForNetwork, .backingOff, .gaveUp:
            return disconnect(to: .closed, reason, now: now)
        case .closed:
            return []
        }
    }

    /// Ends at once, because the client's task was cancelled.
    package mutating func cancelled(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        if case .closed = machine { return [] }
        return disconnect(to: .closed, TransitionReason(.cancelled), now: now, abandoning: connectionID)
    }
}
