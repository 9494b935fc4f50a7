package import LifelineCore

// What happens to a session's connections, and what comes in over them.
extension SessionMachine {
    /// A client has a connection: opens it.
    package mutating func connected(now: MonotonicTime) -> [Action] {
        precondition(role == .client)
        let actions = disconnected(now: now)
        guard state == .detached else { return actions }
        state = .opening
        welcomeDeadline = now + options.welcomeTimeout
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

    /// A client has opened a connection to this side, a server, which takes it for this session.
    ///
    /// - Parameters:
    ///   - credentials: this session's.
    ///   - isResumed: whether the hello named it.
    package mutating func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        now: MonotonicTime
    ) -> [Action] {
        precondition(role == .server)
        var actions = disconnected(now: now)
        guard state == .detached else { return actions }
        state = .open
        _ = inbound.takeReport()
        guard let version = hello.commonVersion else {
            return actions + violated(.version(hello.maximumVersion), now: now)
        }
        do {
            let progress = isResumed ? hello.progress : .none
            actions += tell(try outbound.resume(progress, window: hello.window, now: now), now: now)
        } catch {
            return actions + violated(error, now: now)
        }
        self.credentials = credentials
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
        return endingIfDone(actions + [.opened(credentials, isResumed: isResumed)])
    }

    /// The connection is gone.
    package mutating func disconnected(now: MonotonicTime) -> [Action] {
        switch state {
        case .detached, .ended: return []
        case .opening, .open, .failed: break
        }
        state = .detached
        controlFrames = []
        isPeerLeaving = false
        return endingIfDone(tell(outbound.disconnect(), now: now))
    }

    /// Whether the next frame is an opening, or belongs to a goodbye: a few, which need not wait for room.
    package var hasControlFrames: Bool { !controlFrames.isEmpty }

    /// The next frame to send, if there is one now.
    package mutating func nextFrame(now: MonotonicTime) -> (SessionFrame<Content>, [Action])? {
        if !controlFrames.isEmpty { return (controlFrames.removeFirst(), []) }
        guard state == .open else { return nil }
        if let (place, message, ended) = outbound.next(beginsNothing: isPeerLeaving) {
            let actions = tell(ended.map { [$0] } ?? [], now: now)
            return (.message(place, inbound.takeReport(), message), endingIfDone(actions))
        }
        guard inbound.isReportDue(now: now) else { return nil }
        return (.message(nil, inbound.takeReport(), .blank), [])
    }

    /// When `timerFired` is to be called; nil: not until there was another event.
    @inline(__always)  // It is asked for after every event, and the whole machine would be copied for the call.
    package var nextDeadline: MonotonicTime? {
        guard state != .ended else { return nil }
        let report = state == .open ? inbound.nextDeadline : nil
        let opening = state == .opening ? .earliest(report, welcomeDeadline) : report
        return .earliest(
            .earliest(opening, outbound.nextDeadline),
            .earliest(requests.nextDeadline, running.nextDeadline)
        )
    }

    /// `nextDeadline` has come; calling it early does no harm. There may be a frame to send.
    package mutating func timerFired(now: MonotonicTime) -> [Action] {
        guard state != .ended else { return [] }
        var notWelcomed: [Action] = []
        if state == .opening, let welcomeDeadline, welcomeDeadline <= now {
            state = .failed
            controlFrames = []
            notWelcomed = [.notWelcomed]
        }
        var ended = outbound.timerFired(now: now).map { Action.messageEnded($0.number, $0.outcome) }
        for request in requests.timerFired(now: now) {
            ended.append(.fail(request.waiter.waiter, .timedOut))
            giveUp(request.id, request.waiter, now: now)
        }
        ended += running.timerFired(now: now).map { .cancelRequest($0) }
        inbound.timerFired(now: now)
        return endingIfDone(notWelcomed + ended + tell([], now: now))
    }

    /// A frame came in over the present connection.
    package mutating func received(_ frame: SessionFrame<Content>, now: MonotonicTime) -> [Action] {
        // Most frames. Apart, as the frame is copied to be looked at together with the rest.
        if state == .open, case .message(let place, let acknowledgement, let message) = frame {
            return receivedMessage(message, place, acknowledgement, now: now)
        }
        switch (frame, state, role) {
        case (_, .ended, _), (_, .detached, _), (_, .failed, _):
            // Of a connection that was given up, or one that is being closed.
            return []
        case (.goodbye(let goodbye), .opening, _), (.goodbye(let goodbye), .open, _):
            return received(goodbye, now: now)
        case (.welcome(let welcome), .opening, .client):
            return received(welcome, now: now)
        case (.message(let place, let acknowledgement, let message), .open, _):
            // Not reached, as this is asked for above.
            return receivedMessage(message, place, acknowledgement, now: now)
        case (.message(nil, _, let message), .opening, _) where message.isBlank:
            // A pong: the peer's connection answers pings before its session has an opinion.
            return []
        case (.message, .opening, _):
            return notWelcomed(.notOpened)
        case (.hello, .opening, .client):
            return notWelcomed(.unexpectedFrame)
        case (.hello, .open, .server), (.welcome, .open, .client):
            return violated(.openedTwice, now: now)
        case (.hello, .open, .client), (.hello, .opening, .server), (.welcome, _, .server):
            return violated(.unexpectedFrame, now: now)
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
            let actions = tell(ended, now: now)
            do {
                let new = try received(message, place, now: now)
                return endingIfDone(actions.isEmpty ? new : actions + new)
            } catch {
                // What was acknowledged before is processed nevertheless.
                return actions + violated(error, now: now)
            }
        } catch {
            return violated(error, now: now)
        }
    }

    /// What came in over the present connection is no frame of the protocol: it cannot be decoded or is too long, its places
    /// contradict one another, or its kind has a place that must have none. It would be sent again for ever; before the
    /// welcome nothing can have come that would be.
    package mutating func receivedViolation(_ violation: SessionViolation, now: MonotonicTime) -> [Action] {
        switch state {
        case .detached, .failed, .ended: []
        case .opening: notWelcomed(violation)
        case .open: violated(violation, now: now)
        }
    }

    private mutating func received(_ welcome: SessionWelcome, now: MonotonicTime) -> [Action] {
        guard welcome.version >= SessionVersion.lowest, welcome.version <= SessionVersion.highest else {
            return violated(.version(welcome.version), now: now)
        }
        guard !welcome.isResumed || welcome.session.id == credentials?.id else {
            return violated(.otherSession, now: now)
        }
        var actions: [Action] = []
        if !welcome.isResumed { actions += loseSession(now: now) }
        do {
            let progress = welcome.isResumed ? welcome.progress : .none
            actions += tell(try outbound.resume(progress, window: welcome.window, now: now), now: now)
        } catch {
            return actions + violated(error, now: now)
        }
        credentials = welcome.session
        peerRequestLimit = max(welcome.maximumRequestCount, 1)
        peerFrameLimit = welcome.maximumFrameLength
        peerByteLimit = welcome.window.byteCount
        state = .open
        // What goes on was accepted under this limit; what waited for a new session was not.
        if !welcome.isResumed { actions += refuseTooLong(now: now) }
        return endingIfDone(actions + [.opened(welcome.session, isResumed: welcome.isResumed)])
    }

    private mutating func received(_ goodbye: SessionGoodbye, now: MonotonicTime) -> [Action] {
        switch (goodbye.code, role) {
        case (.draining, _), (.full, _), (nil, _):
            isPeerLeaving = true
            return [.peerLeaving(goodbye)]
        case (.violation, .client):
            let actions = loseSession(now: now)
            state = .failed
            controlFrames = []
            return endingIfDone(actions + [.peerLeaving(goodbye)])
        case (.violation, .server), (.closed, _), (.replaced, _), (.refused, _), (.version, _):
            return end(goodbye, byPeer: true)
        }
    }
}
