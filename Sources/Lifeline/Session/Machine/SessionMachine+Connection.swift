package import LifelineCore

// What happens to a session's connections, and what comes in over them.
extension SessionMachine {
    /// A client has a connection: opens it.
    package mutating func connected(over id: UInt64, now: MonotonicTime) -> [Action] {
        precondition(role == .client)
        guard !life.isOver, life.claim(id) else { return [.closeConnection(id, .inOrder)] }
        let actions = loseConnection(now: now)
        // One that closes, and had only waited for the older connection's end, needs no other.
        guard !life.isOver else { return actions + [.closeConnection(id, .inOrder)] }
        life.connection = .opening(deadline: now + options.welcomeTimeout)
        _ = inbound.takeReport()
        attempt += 1
        let hello = SessionHello(
            session: credentials,
            attempt: attempt,
            progress: inbound.progress,
            window: options.inboundWindow,
            maximumRequestCount: options.maximumRunningCount,
            maximumFrameLength: options.maximumFrameLength
        )
        controlFrames = [.hello(hello)]
        return actions
    }

    /// A client has opened a connection, which asks this side, a server, for its session.
    ///
    /// - Parameters:
    ///   - credentials: this session's.
    ///   - isResumed: whether the hello named it.
    ///   - id: of two connections that claim the session, the one with the higher number has it.
    /// - Returns: what to say on the connection if it does not get the session, and then to close it; nil when it does.
    package mutating func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over id: UInt64,
        now: MonotonicTime
    ) -> (refusal: SessionGoodbye?, [Action]) {
        precondition(role == .server)
        // The registry was about to forget it: the client comes back, and begins another one.
        guard !life.isOver else { return (SessionGoodbye(.draining, "The session has just ended."), []) }
        let older = life.connectionID
        guard life.claim(id) else { return (SessionGoodbye(.replaced, "A newer connection has the session."), []) }
        var actions: [Action] = []
        if let closing = life.replace(older, goodbyeDeadline: now + options.goodbyeTimeout) {
            if closing == .endSending {
                let goodbye = SessionGoodbye(.replaced, "Another connection goes on with the session.")
                actions.append(.sayGoodbye(older, goodbye))
            }
            actions.append(.closeConnection(older, closing))
        }
        actions += loseConnection(now: now)
        life.connection = .open
        _ = inbound.takeReport()
        guard let version = hello.commonVersion else {
            return (nil, actions + violated(.version(hello.maximumVersion), now: now))
        }
        do {
            let progress = isResumed ? hello.progress : .none
            actions += outcomes(of: try outbound.resume(progress, window: hello.window, now: now), now: now)
        } catch {
            return (nil, actions + violated(error, now: now))
        }
        self.credentials = credentials
        wasOpened = true
        peerRequestLimit = max(hello.maximumRequestCount, 1)
        peerFrameLimit = hello.maximumFrameLength
        peerByteLimit = hello.window.byteCount
        // What was accepted before the client was known.
        if !isResumed { actions += refuseTooLong(now: now) }
        let welcome = SessionWelcome(
            version: version,
            session: credentials,
            isResumed: isResumed,
            progress: inbound.progress,
            window: options.inboundWindow,
            maximumRequestCount: options.maximumRunningCount,
            maximumFrameLength: options.maximumFrameLength
        )
        controlFrames = [.welcome(welcome)]
        return (nil, endingIfDone(actions + [.opened(credentials, isResumed: isResumed)], now: now))
    }

    /// A connection is gone.
    package mutating func disconnected(_ id: UInt64, now: MonotonicTime) -> [Action] {
        life.disconnected(id) ? loseConnection(now: now) : []
    }

    private mutating func loseConnection(now: MonotonicTime) -> [Action] {
        if case .none = life.connection { return [] }
        life.lost()
        controlFrames = []
        missed = [:]
        // Of a peer that keeps the rules none is left whose place has come.
        cancelledBeforeTheyCame = cancelledBeforeTheyCame.filter { inbound.isNew(SessionPlace(.ordinary, $0)) }
        return life.isOver ? [] : endingIfDone(outcomes(of: outbound.disconnect(), now: now), now: now)
    }

    /// Whether the next frame is an opening, or belongs to a goodbye: a few, which need not wait for room.
    package var hasControlFrames: Bool { !controlFrames.isEmpty }

    /// Whether nothing counts any more that comes in over a connection.
    package func isDone(with id: UInt64) -> Bool { life.isDone(with: id) }

    /// The number of the present connection; where there is none, of the last one.
    package var connectionID: UInt64 { life.connectionID }

    /// The next frame to send over the present connection, if there is one now.
    ///
    /// - Parameter hasRoom: whether the connection has room; without it, there is only what need not wait for that.
    package mutating func nextFrame(hasRoom: Bool, now: MonotonicTime) -> (SessionFrame<Content>, [Action])? {
        if !controlFrames.isEmpty { return (controlFrames.removeFirst(), []) }
        guard hasRoom, life.canSend else { return nil }
        if let (place, message, ended) = outbound.next(beginsNothing: life.isLeaving) {
            let actions = outcomes(of: ended.map { [$0] } ?? [], now: now)
            return (.message(place, inbound.takeReport(), message), endingIfDone(actions, now: now))
        }
        if inbound.isReportDue(now: now) { return (.message(nil, inbound.takeReport(), .blank), []) }
        guard life.isDraining, let goodbye = life.takeDrain(isIdle: !hasUnsent, now: now) else { return nil }
        return (.goodbye(goodbye), [])
    }

    /// All frames were offered to the present connection.
    ///
    /// - Parameter hasRoom: whether it has taken all of them. Those that wait for room are written later.
    package mutating func offeredFrames(hasRoom: Bool, now: MonotonicTime) -> [Action] {
        let closing = life.offered(
            hasRoom: hasRoom,
            isIdle: life.isLeaving && isIdle,
            role: role,
            goodbyeDeadline: now + options.goodbyeTimeout
        )
        return closing.map { [.closeConnection(life.connectionID, $0)] } ?? []
    }

    /// The present connection has refused frames: it is about to be gone.
    package mutating func sendingFailed() -> [Action] {
        controlFrames = []
        return life.sendingFailed().map { [.closeConnection(life.connectionID, $0)] } ?? []
    }

    /// Whether nothing is under way: the peer has processed all that was sent and knows that all it sent is processed,
    /// and no request that was sent waits for its response.
    private var isIdle: Bool {
        let progress = inbound.progress
        return sentRequestCount == 0 && SessionLane.allCases.allSatisfy { outbound.unprocessedSize($0).frameCount == 0 }
            && progress.processed.ordinary == progress.received && !inbound.hasUnreported
    }

    /// Whether something waits to be sent: for room, or for the peer's window.
    private var hasUnsent: Bool {
        let sent = SessionLane.allCases.reduce(0) { $0 + outbound.unprocessedSize($1).frameCount }
        return outbound.keptSize.frameCount > sent
    }

    /// When `timerFired` is to be called; nil: not until there was another event.
    @inline(__always)  // It is asked for after every event, and the whole machine would be copied for the call.
    package var nextDeadline: MonotonicTime? {
        let own = life.nextDeadline
        guard !life.isOver else { return own }
        let report = life.canSend ? inbound.nextDeadline : nil
        return .earliest(
            .earliest(.earliest(own, report), outbound.nextDeadline),
            .earliest(requests.nextDeadline, running.nextDeadline)
        )
    }

    /// `nextDeadline` has come; calling it early does no harm. There may be a frame to send.
    package mutating func timerFired(now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        while let (id, closing) = life.takeOverdue(now: now) { actions.append(.closeConnection(id, closing)) }
        guard !life.isOver else { return actions }
        if case .opening(let deadline) = life.connection, deadline <= now {
            giveUpConnection(.abortNotWelcomed)
            actions.append(.notWelcomed)
        }
        if let goodbye = life.takeDrain(isIdle: false, now: now) { controlFrames.append(.goodbye(goodbye)) }
        actions += outbound.timerFired(now: now).map { Action.messageEnded($0.number, $0.outcome) }
        for request in requests.timerFired(now: now) {
            actions.append(.fail(request.waiter.waiter, .timedOut))
            giveUp(request.id, request.waiter, now: now)
        }
        actions += running.timerFired(now: now).map { .cancelRequest($0) }
        inbound.timerFired(now: now)
        actions += outcomes(of: [], now: now)
        return life.isOverdue(now: now) ? actions + end(.abandoned, now: now) : endingIfDone(actions, now: now)
    }

    /// A frame came in over a connection.
    package mutating func received(_ frame: SessionFrame<Content>, over id: UInt64, now: MonotonicTime) -> [Action] {
        guard life.hears(id) else { return receivedTooLate(frame, over: id, now: now) }
        // Most frames. Apart, as the frame is copied to be looked at together with the rest.
        if !life.isOpening, case .message(let place, let acknowledgement, let message) = frame {
            return receivedMessage(message, place, acknowledgement, now: now)
        }
        switch (frame, life.isOpening, role) {
        case (.goodbye(let goodbye), _, _):
            return received(goodbye, now: now)
        case (.welcome(let welcome), true, .client):
            return received(welcome, now: now)
        case (.message(nil, _, let message), _, _) where message.isBlank:
            // A pong: the peer's connection answers pings before its session has an opinion.
            return []
        case (.message, _, _):
            return notWelcomed(.notOpened)
        case (.hello, true, _):
            return notWelcomed(.unexpectedFrame)
        case (.hello, false, .server), (.welcome, false, .client):
            return violated(.openedTwice, now: now)
        case (.hello, false, .client), (.welcome, _, .server):
            return violated(.unexpectedFrame, now: now)
        }
    }

    /// A frame came in over a connection that is given up, or over an older one.
    ///
    /// A server that has sent its client away for want of memory goes on with what frees memory: acknowledgements, and
    /// the urgent lane, for room in which the client may wait before it takes what the server keeps for it. A request
    /// that is cancelled before it comes again is never begun. And a client whose session is over does not come back to
    /// say so again. All else comes again.
    private mutating func receivedTooLate(
        _ frame: SessionFrame<Content>,
        over id: UInt64,
        now: MonotonicTime
    ) -> [Action] {
        guard role == .server, !life.isOver, life.isGivenUp(id) else { return [] }
        switch frame {
        case .goodbye(let goodbye) where goodbye.code == .closed:
            return end(.saidByPeer(goodbye), now: now)
        case .message(let place, let acknowledgement, let message):
            // More than an honest client asks and cancels at once. What follows comes again, too.
            guard missed.count + cancelledBeforeTheyCame.count <= 4 * options.maximumRunningCount else { return [] }
            switch (message.kind, place) {
            case (.request(let serial, _), let place?): missed[serial] = place.sequence
            case (.cancel(let serial), _):
                if let sequence = missed[serial], inbound.isNew(SessionPlace(.ordinary, sequence)) {
                    cancelledBeforeTheyCame.insert(sequence)
                }
            default: break
            }
            guard let place, place.lane == .urgent else {
                return receivedMessage(.blank, nil, acknowledgement, now: now)
            }
            return receivedMessage(message, place, acknowledgement, now: now)
        case .hello, .welcome, .goodbye:
            return []
        }
    }

    private mutating func receivedMessage(
        _ message: Message,
        _ place: SessionPlace?,
        _ acknowledgement: SessionAcknowledgement,
        now: MonotonicTime
    ) -> [Action] {
        do {
            let ended = try outbound.acknowledge(acknowledgement)
            let actions = outcomes(of: ended, now: now)
            do {
                let new = try received(message, place, now: now)
                return endingIfDone(actions.isEmpty ? new : actions + new, now: now)
            } catch {
                // What was acknowledged before is processed nevertheless.
                return actions + violated(error, now: now)
            }
        } catch {
            return violated(error, now: now)
        }
    }

    /// What came in over a connection is no frame of the protocol: it cannot be decoded or is too long, its places
    /// contradict one another, or its kind has a place that must have none. It would be sent again for ever; before the
    /// welcome nothing can have come that would be.
    package mutating func receivedViolation(
        _ violation: SessionViolation,
        over id: UInt64,
        now: MonotonicTime
    ) -> [Action] {
        guard life.hears(id) else { return [] }
        return life.isOpening ? notWelcomed(violation) : violated(violation, now: now)
    }

    private mutating func received(_ welcome: SessionWelcome, now: MonotonicTime) -> [Action] {
        guard welcome.version >= SessionVersion.lowest, welcome.version <= SessionVersion.highest else {
            return violated(.version(welcome.version), now: now)
        }
        guard !welcome.isResumed || welcome.session.id == credentials?.id else {
            return violated(.otherSession, now: now)
        }
        var actions: [Action] = []
        if !welcome.isResumed { actions += loseSession(.forgotten, now: now) }
        do {
            let progress = welcome.isResumed ? welcome.progress : .none
            actions += outcomes(of: try outbound.resume(progress, window: welcome.window, now: now), now: now)
        } catch {
            return actions + violated(error, now: now)
        }
        credentials = welcome.session
        wasOpened = true
        peerRequestLimit = max(welcome.maximumRequestCount, 1)
        peerFrameLimit = welcome.maximumFrameLength
        peerByteLimit = welcome.window.byteCount
        life.connection = .open
        // What goes on was accepted under this limit; what waited for a new session was not.
        if !welcome.isResumed { actions += refuseTooLong(now: now) }
        return endingIfDone(actions + [.opened(welcome.session, isResumed: welcome.isResumed)], now: now)
    }

    private mutating func received(_ goodbye: SessionGoodbye, now: MonotonicTime) -> [Action] {
        switch (goodbye.code, role) {
        case (.draining, _), (.full, _), (nil, _):
            // In place of a welcome it says that nobody is let in.
            if life.isOpening { giveUpConnection(.inOrder) } else { life.peerLeaves() }
            return endingIfDone([.peerLeaving(pause: goodbye.pause)], now: now)
        case (.violation, .client):
            let actions = loseSession(.accused(goodbye), now: now)
            giveUpConnection(.inOrder)
            return endingIfDone(actions + [.accused(goodbye)], now: now)
        case (.violation, .server), (.closed, _), (.replaced, _), (.refused, _), (.version, _):
            return end(.saidByPeer(goodbye), now: now)
        }
    }
}
