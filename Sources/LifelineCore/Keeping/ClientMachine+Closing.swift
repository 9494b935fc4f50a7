// Closing a client.
extension ClientMachine {
    /// Closes in order, or joins a close that is under way.
    package mutating func closeRequested(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        if manager.state == .draining { return [] }
        return perform(manager.closeRequested(now: now), now)
    }

    /// Closes at the user's request. The second call gives up unwritten messages.
    package mutating func closedByUser(now: MonotonicTime) -> [Action] {
        defer { hasUserClosed = true }
        return hasUserClosed ? cutRequested(now: now) : closeRequested(now: now)
    }

    /// Closes at once, because the wait for a close was cancelled.
    package mutating func cutRequested(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        let actions = closeRequested(now: now) + cutClosing(.closedByUser)
        guard manager.state == .draining else { return actions }
        return actions + perform(manager.closeRequested(now: now), now)
    }

    /// Ends at once, because the client's task was cancelled.
    package mutating func cancelled(now: MonotonicTime) -> [Action] {
        let now = manager.observe(now)
        return cutClosing(.cancelled) + perform(manager.cancelled(now: now), now)
    }

    mutating func cutClosing(_ code: TransitionReason.Code) -> [Action] {
        cutClosing(TransitionReason(code))
    }

    /// Cuts a connection that the peer has ended and that still writes accepted messages.
    mutating func cutClosing(_ reason: TransitionReason) -> [Action] {
        guard case .open(let open) = link, open.closeDeadline != nil else { return [] }
        link = .open(Open(id: open.id))
        return [.abort(open.id, reason)]
    }
}

extension ConnectionError {
    /// The reason for the end of input when the peer has ended its side in order.
    package static var peerEnded: ConnectionError {
        ConnectionError(code: .closedByPeer, message: "The peer ended its side of the connection.")
    }

    /// The reason why nothing more is sent.
    package static var clientClosed: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The client is closed. Make another one to go on.")
    }

    static var peerReadsTooSlowly: ConnectionError {
        ConnectionError(
            code: .closedLocally,
            message: "The peer ended its side and did not take the remaining bytes in time."
        )
    }

    static var peerDidNotEnd: ConnectionError {
        ConnectionError(
            code: .closedLocally,
            message: "All was written, but the peer did not end its side in time; it may not have read all."
        )
    }

    static var alreadyRun: ConnectionError {
        ConnectionError(
            code: .alreadyRun,
            message: "A client runs once, and this one has already begun. Make another one to run again."
        )
    }
}
