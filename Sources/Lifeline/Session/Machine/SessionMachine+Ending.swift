internal import LifelineCore

// How things end.
extension SessionMachine {
    /// Lets the peer know that a request of this side's is over, if it knows of it at all.
    mutating func giveUp(_ id: RequestID, _ request: RequestInFlight, now: MonotonicTime) {
        if outbound.withdraw(request.number) { return }
        outbound.accept(.cancel(serial: Self.serial(of: id)), now: now)
    }

    /// Whether refusals of more requests have room: otherwise the window is left to close until responses are sent.
    ///
    /// Only urgent ones count, which a peer processes as they come. Those in the ordinary lane may wait for what the peer
    /// holds in the same way, so that both would wait for ever; they are no more than may run, as only what has run has any.
    /// Nor must requests that run for long hold back what came behind them.
    var hasRoomForRequests: Bool {
        let waiting = outbound.unadmittedResponseSize(.urgent)
        return waiting.frameCount < options.maximumRunningCount
            && waiting.byteCount <= options.unadmittedResponseByteLimit
    }

    /// Tells what became of messages, and who needs not wait any more.
    mutating func tell(_ ended: [OutboundSequence<Content>.Ended], now: MonotonicTime) -> [Action] {
        var actions = ended.map { Action.messageEnded($0.number, $0.outcome) }
        let admitted = outbound.takeAdmitted()
        if !admitted.isEmpty { actions.append(.admitted(admitted)) }
        if hasRoomForRequests { inbound.finishHeld(now: now) }
        return actions
    }

    /// The actions, and those of the end when everything is done that was to be done before.
    mutating func endingIfDone(_ actions: [Action]) -> [Action] {
        isClosing ? actions + closeIfDone() : actions
    }

    mutating func closeIfDone() -> [Action] {
        guard isClosing, outbound.keptSize.frameCount == 0, requests.count == 0, running.isEmpty else { return [] }
        // What the peer does not know needs no goodbye.
        guard state == .open || credentials == nil else { return [] }
        return abandon(SessionGoodbye(.closed))
    }

    /// The peer has forgotten the session, or cannot go on with it: what it may have processed is in doubt.
    mutating func loseSession(now: MonotonicTime) -> [Action] {
        guard credentials != nil else { return [] }
        credentials = nil
        session += 1
        inbound = InboundMessages(options)
        let cancelled = running.cancelAll()
        let ended = outbound.forget()
        return [.sessionLost] + failRequests(exceptUnsent: true) + cancelled.map { .cancelRequest($0) }
            + tell(ended, now: now)
    }

    /// The peer broke the rules, so that the two ends do not agree on the session any more.
    mutating func violated(_ violation: SessionViolation, now: MonotonicTime) -> [Action] {
        let goodbye = SessionGoodbye(.violation, violation.message)
        switch role {
        case .server:
            return [.violated(violation)] + abandon(goodbye)
        case .client:
            let actions = loseSession(now: now)
            state = .failed
            controlFrames = [.goodbye(goodbye)]
            return endingIfDone([.violated(violation)] + actions)
        }
    }

    /// What came in place of a welcome says nothing of the session, as nobody who knows it has answered: the connection is
    /// given up.
    mutating func notWelcomed(_ violation: SessionViolation) -> [Action] {
        state = .failed
        // A server that knows a session would end it with this.
        controlFrames = credentials == nil ? [.goodbye(SessionGoodbye(.violation, violation.message))] : []
        return [.violated(violation)]
    }

    mutating func end(_ goodbye: SessionGoodbye, byPeer: Bool) -> [Action] {
        state = .ended
        controlFrames = []
        let actions = failRequests(exceptUnsent: false) + running.cancelAll().map { .cancelRequest($0) }
        // Nobody is admitted any more: what ends is told so.
        return actions + outbound.end().map { .messageEnded($0.number, $0.outcome) } + [.ended(goodbye, byPeer: byPeer)]
    }

    /// Ends what waits and is larger than the peer of a new session takes: all of it was accepted for another one, or
    /// before there was any.
    mutating func refuseTooLong(now: MonotonicTime) -> [Action] {
        let refused = outbound.refuse(longerThan: peerFrameLimit, largerThan: peerByteLimit)
        if refused.isEmpty { return [] }
        let refusedNumbers = Set(refused)
        let failed = requests.connectionLost { [requests] id in
            requests.waiter(of: id).map { !refusedNumbers.contains($0.number) } ?? true
        }
        let requestNumbers = Set(failed.map { $0.waiter.number })
        let ended = refused.filter { !requestNumbers.contains($0) }.map {
            OutboundSequence<Content>.Ended($0, .refused)
        }
        return failed.map { .fail($0.waiter.waiter, .messageRefused) } + tell(ended, now: now)
    }

    /// Ends the requests that were sent; those that were not fail too, or wait for the next session.
    private mutating func failRequests(exceptUnsent: Bool) -> [Action] {
        let waiting = requests.connectionLost { [requests, outbound] id in
            exceptUnsent && requests.waiter(of: id).map { outbound.isWaiting($0.number) } ?? false
        }
        return waiting.map { request in
            .fail(request.waiter.waiter, outbound.isWaiting(request.waiter.number) ? .notSent : .sessionLost)
        }
    }
}
