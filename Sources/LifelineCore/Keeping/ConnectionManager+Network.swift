// Events of the network.
extension ConnectionManager {
    /// Notes that the network came, came back, or changed.
    package mutating func networkUp(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        hasNetwork = true
        // Another network may lead to another server.
        if pauseEnd != nil { pauseEnd = now }
        let reason = TransitionReason(.networkUp)
        switch machine {
        case .waitingForNetwork, .backingOff, .gaveUp:
            backoff.refill()
            return connect(reason, now: now)
        case .ready(let id, _):
            // The connection may use a network that is gone.
            return [.probe(id)]
        case .idle, .connecting, .draining, .closed:
            return []
        }
    }

    /// Notes that the network went away. No attempts are used until it is back.
    package mutating func networkLost(now: MonotonicTime) -> [Action] {
        let now = observe(now)
        hasNetwork = false
        let reason = TransitionReason(.networkLost)
        switch machine {
        case .connecting(let id), .ready(let id, _):
            return disconnect(to: .waitingForNetwork, reason, now: now, abandoning: id)
        case .backingOff:
            return disconnect(to: .waitingForNetwork, reason, now: now)
        case .draining(let id):
            // Nothing more can be written.
            return disconnect(to: .closed, reason, now: now, abandoning: id)
        case .idle, .waitingForNetwork, .gaveUp, .closed:
            return []
        }
    }
}
