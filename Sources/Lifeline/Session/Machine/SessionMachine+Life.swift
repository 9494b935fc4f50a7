internal import LifelineCore

// How the session, what it has under way, and its connections end.
extension SessionMachine {
    /// Takes nothing new from now on, and ends the session when everything that was accepted is processed, and every
    /// request has ended; at the deadline at the latest. A server's session that has no connection waits for the next
    /// one, to say so; a client makes none only for that.
    package mutating func close(by deadline: MonotonicTime? = nil, now: MonotonicTime) -> [Action] {
        life.close(by: deadline)
        return life.isOverdue(now: now) ? end(.abandoned, now: now) : closeIfDone(now: now)
    }

    /// Ends the session at once. The reason says what the peer is told, where there is a connection.
    package mutating func end(_ reason: SessionEndReason, now: MonotonicTime) -> [Action] {
        guard !life.isOver else { return [] }
        var actions: [Action] = []
        if case .shutDown = reason {
            // Whatever connection there is, it is gone as far as the session goes.
            life.lost()
            controlFrames = []
            actions = outcomes(of: outbound.disconnect(), now: now)
        }
        sayGoodbye(reason.goodbye(from: role))
        life.ended(reason)
        actions += failRequests(exceptUnsent: false) + running.cancelAll().map { .cancelRequest($0) }
        // No push is admitted any more: each that waits is told its end.
        return actions + outbound.end().map { .messageEnded($0.number, $0.outcome) } + [.ended(reason)]
    }

    /// Tells the peer that this side goes away, and that it is to come back after a pause: once nothing waits to be
    /// sent, and at the deadline at the latest. The peer leaves when it has nothing more to do here, so that what is
    /// sent later would not reach it. One that comes back to this side nevertheless is told again.
    package mutating func drain(pause: Duration, by deadline: MonotonicTime) {
        life.drain(pause: pause, by: deadline)
    }

    /// Has the present connection closed, once the goodbye of a session that ends is said.
    private mutating func sayGoodbye(_ goodbye: SessionGoodbye?) {
        let closing: SessionClosing = role == .client ? .byOwner : .inOrder
        switch life.connection {
        case .none, .closed:
            break
        case .closing:
            // It has something else to say.
            break
        case .left:
            life.connection = .closing(closing, saysGoodbye: false)
        case .opening, .open, .leaving:
            if let goodbye {
                // So that what was processed is not in doubt for the peer.
                if life.canSend, inbound.hasUnreported {
                    controlFrames.append(.message(nil, inbound.takeReport(), .blank))
                }
                controlFrames.append(.goodbye(goodbye))
            } else {
                controlFrames = []
            }
            life.connection = .closing(closing, saysGoodbye: goodbye != nil)
        }
    }

    /// Has the present connection closed, over which this side can do nothing more.
    mutating func giveUpConnection(_ closing: SessionClosing, saying goodbye: SessionGoodbye? = nil) {
        let goodbye = life.canSend || life.isOpening ? goodbye : nil
        controlFrames = goodbye.map { [.goodbye($0)] } ?? []
        life.connection = .closing(closing, saysGoodbye: goodbye != nil)
    }

    /// Lets the peer know that a request of this side's is over, if it knows of it at all.
    mutating func giveUp(_ id: RequestID, _ request: RequestInFlight, now: MonotonicTime) {
        if outbound.withdraw(request.number) { return }
        outbound.accept(.cancel(serial: Self.serial(of: id)), now: now)
    }

    /// Whether refusals of more requests have room: otherwise the window is left to close until responses are sent.
    ///
    /// Only urgent ones count, which a peer processes as they come. Those in the ordinary lane may wait for what the
    /// peer holds in the same way, so that both would wait for ever; they are no more than may run, as only what has
    /// run has any. Nor must requests that run for long hold back what came behind them.
    var hasRoomForRequests: Bool {
        let waiting = outbound.unadmittedResponseSize(.urgent)
        return waiting.frameCount < options.maximumRunningCount
            && waiting.byteCount <= options.unadmittedResponseByteLimit
    }

    /// The actions that say what became of messages, and who needs not wait any more.
    mutating func outcomes(of ended: [OutboundSequence<Content>.Ended], now: MonotonicTime) -> [Action] {
        var actions = ended.map { Action.messageEnded($0.number, $0.outcome) }
        let admitted = outbound.takeAdmitted()
        if !admitted.isEmpty { actions.append(.admitted(admitted)) }
        if hasRoomForRequests { inbound.finishHeld(now: now) }
        return actions
    }

    /// The actions, and those of the end when this side closes and everything is done.
    mutating func endingIfDone(_ actions: [Action], now: MonotonicTime) -> [Action] {
        life.isClosing ? actions + closeIfDone(now: now) : actions
    }

    private mutating func closeIfDone(now: MonotonicTime) -> [Action] {
        guard life.isClosing, outbound.keptSize.frameCount == 0, requests.count == 0, running.isEmpty else { return [] }
        switch life.connection {
        case .open, .leaving:
            return end(.closed, now: now)
        case .none:
            // A server's client may come back, to be told; a peer that does not know the session needs no goodbye.
            return role == .client || credentials == nil ? end(.closed, now: now) : []
        case .opening, .left, .closing, .closed:
            return credentials == nil ? end(.closed, now: now) : []
        }
    }

    /// A client's session cannot go on: what the server may have processed is in doubt.
    mutating func loseSession(_ loss: SessionLoss, now: MonotonicTime) -> [Action] {
        guard credentials != nil else { return [] }
        credentials = nil
        session += 1
        inbound = InboundMessages(options)
        let cancelled = running.cancelAll()
        let ended = outbound.forget()
        return [.sessionLost(loss)] + failRequests(exceptUnsent: true) + cancelled.map { .cancelRequest($0) }
            + outcomes(of: ended, now: now)
    }

    /// The peer broke the rules, so that the two ends do not agree on the session any more.
    mutating func violated(_ violation: SessionViolation, now: MonotonicTime) -> [Action] {
        switch role {
        case .server:
            return [.violated(violation)] + end(.violated(violation), now: now)
        case .client:
            let actions = loseSession(.violated(violation), now: now)
            giveUpConnection(
                .abortViolated(violation.message),
                saying: SessionGoodbye(.violation, violation.message)
            )
            return endingIfDone([.violated(violation)] + actions, now: now)
        }
    }

    /// What came in place of a welcome says nothing of the session, as nobody who knows it has answered.
    mutating func notWelcomed(_ violation: SessionViolation) -> [Action] {
        // A server that knows a session would end it with this.
        let goodbye = credentials == nil ? SessionGoodbye(.violation, violation.message) : nil
        giveUpConnection(.abortViolated(violation.message), saying: goodbye)
        return [.violated(violation)]
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
        return failed.map { .fail($0.waiter.waiter, .messageRefused) } + outcomes(of: ended, now: now)
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
