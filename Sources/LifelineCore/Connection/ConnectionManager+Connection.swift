// What happens to the attempt or connection that there is.
extension ConnectionManager {
    /// The attempt succeeded: there is a connection.
    package mutating func connected(_ id: ConnectionID, now: MonotonicTime) -> [Action] {
        let now = observe(now)
        switch machine {
        case .connecting(id):
            let heartbeat = heartbeatConfiguration.map { Heartbeat($0, connectedAt: now) }
            let connection = Connection(id: id, since: now, heartbeat: heartbeat)
            return [move(to: .ready(connection), TransitionReason(.connected), now: now)]
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// The attempt failed.
    package mutating func connectFailed(
        _ id: ConnectionID,
        _ error: ConnectionError,
        now: MonotonicTime
    ) -> [Action] {
        connectionEnded(id, .connectFailed(error), now: now)
    }

    /// The attempt or connection is no more, and nobody here gave it up: the peer closed it, it was reset, the peer
    /// violated the protocol, or it was drained.
    ///
    /// - Parameter lastInboundAt: When the peer last gave a sign of life. It counts for a connection that the heartbeat
    ///   found dead: silence is no stability.
    package mutating func connectionEnded(
        _ id: ConnectionID,
        _ reason: TransitionReason,
        lastInboundAt: MonotonicTime? = nil,
        now: MonotonicTime
    ) -> [Action] {
        let now = observe(now)
        switch machine {
        case .connecting(id):
            return tryAgain(after: reason, now: now)
        case .ready(let connection) where connection.id == id:
            let stoodUntil = reason.code == .heartbeatTimeout ? lastInboundAt ?? connection.since : now
            if stoodUntil - connection.since >= stabilityPeriod { backoff.refill() }
            return tryAgain(after: reason, now: now)
        case .draining(id):
            return leave(to: .closed, reason, now: now)
        case .idle, .waitingForNetwork, .connecting, .ready, .backingOff, .draining, .gaveUp, .closed:
            return []
        }
    }

    /// Bytes have come in, the last ones at `lastInboundAt`. It is enough to report this to `timerFired`.
    package mutating func received(lastInboundAt: MonotonicTime, _ id: ConnectionID, now: MonotonicTime) {
        let now = observe(now)
        guard case .ready(var connection) = machine, connection.id == id else { return }
        connection.heartbeat?.received(at: min(lastInboundAt, now))
        machine = .ready(connection)
    }

    /// The peer answered the ping of this number.
    package mutating func receivedPong(number: UInt64, _ id: ConnectionID, now: MonotonicTime) {
        let now = observe(now)
        guard case .ready(var connection) = machine, connection.id == id else { return }
        connection.heartbeat?.receivedPong(number: number, now: now)
        machine = .ready(connection)
    }

    /// `nextDeadline` has come; calling it early does no harm.
    ///
    /// - Parameter lastInboundAt: When bytes last came in on the present connection; nil when none did.
    package mutating func timerFired(lastInboundAt: MonotonicTime?, now: MonotonicTime) -> [Action] {
        let now = observe(now)
        switch machine {
        case .backingOff(let until):
            if now < until { return [] }
            return connect(TransitionReason(.retryDue), now: now)
        case .ready(var connection):
            guard let action = connection.heartbeat?.timerFired(lastInboundAt: lastInboundAt, now: now) else {
                return []
            }
            machine = .ready(connection)
            switch action {
            case .none: return []
            case .sendPing(let number): return [.sendPing(connection.id, number: number)]
            case .timedOut: return peerDied(connection, now: now)
            }
        case .idle, .waitingForNetwork, .connecting, .draining, .gaveUp, .closed:
            return []
        }
    }

    private mutating func peerDied(_ connection: Connection, now: MonotonicTime) -> [Action] {
        // Silence is no stability: a peer that accepts and never speaks is not to be tried for ever.
        let lastLife = connection.heartbeat?.lastLife ?? now
        if lastLife - connection.since >= stabilityPeriod { backoff.refill() }
        return tryAgain(after: TransitionReason(.heartbeatTimeout), now: now, abandoning: connection.id)
    }
}
