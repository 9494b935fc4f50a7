// The present attempt or connection.
extension ClientMachine {
    /// Notes that the attempt succeeded. If it was given up meanwhile, its connection is aborted.
    package mutating func connected(_ id: ConnectionID, now: MonotonicTime) -> [Action] {
        guard case .connecting(let attempt) = link, attempt.id == id else { return [] }
        let now = manager.observe(now)
        if let reason = attempt.givenUp { return [.abort(id, reason)] }
        link = .open(Open(id: id))
        var actions = perform(manager.connected(id, now: now), now)
        actions.append(.use(id))
        if attempt.hasPeerEnded { actions += peerEnded(id, now) }
        return actions + handOverNext(now)
    }

    /// Notes that the attempt ended without a connection.
    ///
    /// - Parameter error: the reason for the failure; nil when the attempt was given up.
    package mutating func connectFailed(
        _ id: ConnectionID,
        _ error: ConnectionError?,
        now: MonotonicTime
    ) -> [Action] {
        guard case .connecting(let attempt) = link, attempt.id == id else { return [] }
        let now = manager.observe(now)
        link = .none
        guard let error else { return beginAttemptOrFinish() }
        return perform(manager.connectFailed(id, error, now: now), now)
    }

    /// Notes that the peer ended its side in order. Accepted messages are still written.
    package mutating func inputEnded(_ id: ConnectionID, now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        switch link {
        case .connecting(var attempt) where attempt.id == id:
            attempt.hasPeerEnded = true
            link = .connecting(attempt)
            return []
        case .open(let open) where open.id == id:
            return peerEnded(id, now)
        case .none, .connecting, .open, .over:
            return []
        }
    }

    private mutating func peerEnded(_ id: ConnectionID, _ now: MonotonicTime) -> [Action] {
        // A connection that drains is already being closed.
        guard manager.state == .ready else { return [] }
        link = .open(Open(id: id, closeDeadline: closeDeadline(from: now)))
        return perform(manager.connectionEnded(id, .ended(by: nil), now: now), now) + [.close(id)]
    }

    /// Notes that the connection has ended. A send that was offered to it waits for another one.
    package mutating func connectionClosed(
        _ id: ConnectionID,
        _ report: ClosureReport,
        now: MonotonicTime
    ) -> [Action] {
        let now = manager.observe(now)
        switch link {
        case .connecting(let attempt) where attempt.id == id && attempt.givenUp != nil:
            link = .none
            return beginAttemptOrFinish()
        case .open(let open) where open.id == id:
            link = .none
            let counts = MessageCounts(report)
            // This side has ended the connection, so the step was made before.
            if let steps = publishHeldSteps(counts) { return endHandOver() + steps + beginAttemptOrFinish() }
            let (reason, lastSignOfLife) = ending(report)
            let decisions = manager.connectionEnded(id, reason, lastSignOfLife: lastSignOfLife, now: now)
            return actions(for: decisions, now, counts: counts) + endHandOver() + beginAttemptOrFinish()
        case .none, .connecting, .open, .over:
            return []
        }
    }

    /// Returns the reason for which a connection has ended that this side did not give up.
    private func ending(_ report: ClosureReport) -> (TransitionReason, lastSignOfLife: MonotonicTime?) {
        let isDraining = manager.state == .draining
        let failure = report.failure ?? (isDraining && !report.peerEndedInTime ? .peerDidNotEnd : nil)
        let reason = isDraining && failure == nil ? TransitionReason(.drained) : .ended(by: failure)
        guard reason.code == .heartbeatTimeout else { return (reason, nil) }
        // A silent peer was there until its last bytes, if there were any.
        return (reason, report.lastInboundAt ?? MonotonicTime(nanoseconds: .min))
    }

    /// Gives up an attempt or connection. An attempt that has not begun never begins.
    mutating func giveUp(_ id: ConnectionID, _ reason: TransitionReason) -> [Action] {
        if nextAttempt == id { nextAttempt = nil }
        switch link {
        case .connecting(var attempt) where attempt.id == id:
            attempt.givenUp = reason
            link = .connecting(attempt)
            return [.abort(id, reason)]
        case .open(let open) where open.id == id:
            return [.abort(id, reason)]
        case .none, .connecting, .open, .over:
            return []
        }
    }
}

// Network and time.
extension ClientMachine {
    /// Notes that the network came, came back, or changed.
    package mutating func networkUp(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        return perform(manager.networkUp(now: now), now)
    }

    /// Notes that the network went away.
    package mutating func networkLost(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        return cutClosing(.networkLost) + perform(manager.networkLost(now: now), now)
    }

    /// Notes that the peer goes away, and asks for this pause before the next attempt.
    package mutating func peerLeaving(pause: Duration, now: MonotonicTime) {
        manager.pauseRequested(for: min(pause, maximumPause), now: now)
    }

    /// Notes that `nextDeadline` has passed; calling this early does no harm.
    package mutating func timerFired(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        var actions = perform(manager.timerFired(now: now), now) + actions(forEnded: queue.timerFired(now: now))
        guard case .open(let open) = link else { return actions }
        if let deadline = open.closeDeadline, now >= deadline { actions += cutClosing(.ended(by: .peerReadsTooSlowly)) }
        if sleepWatch?.timerFired(now: now) == true { actions.append(.probe(open.id)) }
        return actions
    }
}
