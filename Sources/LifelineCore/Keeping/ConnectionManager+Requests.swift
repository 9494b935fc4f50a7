// What the user asks for.
extension ConnectionManager {
    /// The user starts the client. Only the first time counts.
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

    /// The user wants a new connection, without waiting and with a fresh budget. An attempt under way goes on.
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
            // The network's return brings a fresh budget anyway.
            return []
        }
    }

    /// The user closes in order; the second time, at once.
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

    /// The task that runs the client was cancelled: ends at once.
    package mutating func cancelled(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        if case .closed = machine { return [] }
        return disconnect(to: .closed, TransitionReason(.cancelled), now: now, abandoning: connectionID)
    }
}
