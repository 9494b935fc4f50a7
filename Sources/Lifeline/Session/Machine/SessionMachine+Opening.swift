package import LifelineCore

// The opening of connections for a session, and their end.
extension SessionMachine {
    /// The parts of an opening that the machine itself does not have.
    package struct OpeningDetails {
        let name: String
        var metadata: [String: String]
        let kept: Duration

        /// - Parameters:
        ///   - name: on a client: the name by which the server finds the session.
        ///   - kept: on a server: how long it keeps the session without a connection.
        package init(name: String = "", metadata: [String: String] = [:], kept: Duration = .zero) {
            (self.name, self.metadata, self.kept) = (name, metadata, kept)
        }
    }

    /// Opens a client's new connection.
    package mutating func connected(
        over id: UInt64,
        _ details: OpeningDetails = OpeningDetails(),
        now: MonotonicTime,
        into actions: inout [Action]
    ) {
        precondition(role == .client)
        guard !life.isOver, life.claim(id) else { return actions.append(.closeConnection(id, .inOrder)) }
        loseConnection(now: now, into: &actions)
        // A session that closes, and only waited for the older connection's end, needs no other.
        guard !life.isOver else { return actions.append(.closeConnection(id, .inOrder)) }
        life.connection = .opening(deadline: now + options.welcomeTimeout)
        attempt += 1
        let hello = ClientOpening(
            minimumVersion: SessionVersion.lowest,
            maximumVersion: SessionVersion.highest,
            credentials: credentials,
            attempt: attempt,
            progress: progress,
            terms: terms,
            name: details.name,
            metadata: details.metadata,
            store: durability?.opening
        )
        hello.write(to: &control)
        progressWasTold()
        if earlyConnectionID == id { notWelcomed(.notOpened, into: &actions) }
    }

    /// On a server: gives the session to a connection that a client has opened.
    ///
    /// - Parameters:
    ///   - credentials: those of this session.
    ///   - isResumed: whether the hello named it.
    ///   - id: the connection's number: of two connections that claim the session, the one with the higher number gets
    ///     it.
    /// - Returns: the goodbye to send before closing the connection if it does not get the session; nil if it does.
    package mutating func opened(
        by hello: ClientOpening,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        over id: UInt64,
        _ details: OpeningDetails = OpeningDetails(),
        now: MonotonicTime,
        into actions: inout [Action]
    ) -> SessionGoodbye? {
        precondition(role == .server)
        // The registry was about to forget the session: the client comes back, and begins another one.
        guard !life.isOver else { return SessionGoodbye(.draining, "The session has just ended.") }
        guard !life.isMoving else { return .moving }
        let older = life.connectionID
        guard life.claim(id) else { return SessionGoodbye(.replaced, "A newer connection has the session.") }
        if let closing = life.replace(older, goodbyeDeadline: now + options.goodbyeTimeout) {
            if closing == .endSending {
                let goodbye = SessionGoodbye(.replaced, "Another connection goes on with the session.")
                actions.append(.sayGoodbye(older, goodbye))
            }
            actions.append(.closeConnection(older, closing))
        }
        loseConnection(now: now, into: &actions)
        guard !life.isOver else { return SessionGoodbye(.draining, "The session has just ended.") }
        // Only a goodbye may come before the welcome.
        life.connection = .opening(deadline: now + options.welcomeTimeout)
        guard let version = hello.commonVersion else {
            violated(.version(hello.maximumVersion), now: now, into: &actions)
            return nil
        }
        peerOpened(hello.store)
        do {
            try goOn(isResumed ? hello.progress : nil, hello.terms, now: now, into: &actions)
        } catch {
            violated(error, now: now, into: &actions)
            return nil
        }
        life.connection = .open
        self.credentials = credentials
        let welcome = ServerOpening(
            version: version,
            credentials: credentials,
            isResumed: isResumed,
            kept: details.kept,
            progress: progress,
            terms: terms,
            metadata: details.metadata,
            store: durability?.opening
        )
        welcome.write(to: &control)
        progressWasTold()
        actions.append(.opened(credentials, isResumed: isResumed))
        endIfDone(now: now, into: &actions)
        return nil
    }

    /// Handles the server's answer to this client's hello.
    mutating func receive(_ welcome: ServerOpening, now: MonotonicTime, into actions: inout [Action]) {
        guard welcome.version >= SessionVersion.lowest, welcome.version <= SessionVersion.highest else {
            return violated(.version(welcome.version), now: now, into: &actions)
        }
        guard !welcome.isResumed || welcome.credentials.id == credentials?.id else {
            return violated(.otherSession, now: now, into: &actions)
        }
        if !welcome.isResumed { loseSession(.forgotten, now: now, into: &actions) }
        peerOpened(welcome.store)
        do {
            try goOn(welcome.isResumed ? welcome.progress : nil, welcome.terms, now: now, into: &actions)
        } catch {
            return violated(error, now: now, into: &actions)
        }
        life.connection = .open
        credentials = welcome.credentials
        actions.append(.opened(welcome.credentials, isResumed: welcome.isResumed))
    }

    /// Continues at the peer's progress; begins a new session if that is nil.
    private mutating func goOn(
        _ progress: OpeningProgress?,
        _ terms: SessionTerms,
        now: MonotonicTime,
        into actions: inout [Action]
    ) throws(SessionViolation) {
        wasOpened = true
        guard let progress else {
            peerTerms = terms
            return carryOver(now: now, into: &actions)
        }
        try check(progress)
        // Within a session no limit shrinks, and credits began with those of the first opening.
        peerTerms = peerTerms.map { $0.raised(by: terms) } ?? terms
        peerReceived = progress.received
        acknowledged(upTo: progress.processed, urgent: progress.urgent, now: now, into: &actions)
        ordinary.resume(behind: progress.received)
        urgent.resume(behind: progress.urgent)
        tellCreditsAgain()
        renew(behind: progress.received, now: now, into: &actions)
        waiting.makeAllReady()
        admitWaiting(now: now, into: &actions)
    }

    /// Notes that an opening carries this side's progress; processed ranges beyond it follow.
    private mutating func progressWasTold() {
        inbound.connectionOpened()
        urgentInbound.connectionOpened()
    }

    /// Checks that the progress of a peer that comes back is possible.
    private func check(_ progress: OpeningProgress) throws(SessionViolation) {
        guard progress.processed < ordinary.sentEnd, progress.received < ordinary.sentEnd else {
            throw .unknownAcknowledgement(SessionPlace(.ordinary, max(progress.processed, progress.received)))
        }
        guard progress.urgent < urgent.sentEnd else {
            throw .unknownAcknowledgement(SessionPlace(.urgent, progress.urgent))
        }
        guard progress.processed >= ordinary.first - 1 else {
            throw .acknowledgementWentBack(SessionPlace(.ordinary, progress.processed))
        }
        guard progress.received >= progress.processed, progress.received >= ordinary.highestAcknowledged,
            progress.received >= peerReceived
        else {
            throw .acknowledgementWentBack(SessionPlace(.ordinary, progress.received))
        }
        guard progress.urgent >= urgent.highestAcknowledged else {
            throw .acknowledgementWentBack(SessionPlace(.urgent, progress.urgent))
        }
    }

    /// Updates frames that are sent again: the remaining times of requests, and blanks for messages that need not be
    /// sent.
    private mutating func renew(behind received: UInt64, now: MonotonicTime, into actions: inout [Action]) {
        // Copied, because they are read while the log is being changed.
        let (requests, details) = (requests, details)
        var stale: [(place: UInt64, outcome: SessionDeliveryOutcome)] = []
        var newest: [ScopedKey: UInt64] = [:]
        ordinary.forEachUnsent(from: received + 1) { place, tag, frame in
            if tag.role == .request {
                guard let (_, message) = Self.parsed(UnsafeRawBufferPointer(frame)),
                    message.timeoutMilliseconds != 0
                else { return }
                // A request that has ended meanwhile is cancelled by a later frame.
                let deadline = requests.waiter(serial: message.serial)?.deadline
                OutboundFrame.patchTimeout(
                    in: frame,
                    milliseconds: deadline.map { Self.timeout(until: $0, now: now) } ?? 1
                )
            } else if tag.hasDetails, let details = details[place] {
                if let deadline = details.deadline, deadline <= now { return stale.append((place, .expired)) }
                guard let key = details.key else { return }
                if let older = newest.updateValue(place, forKey: key) { stale.append((older, .replaced)) }
            }
        }
        for (key, place) in newest {
            if case .waiting? = newestByKey[key] { stale.append((place, .replaced)) }
        }
        for (place, outcome) in stale.sorted(by: { $0.place < $1.place }) {
            blank(place, outcome, now: now, into: &actions)
        }
    }

    /// Schedules all credits that differ from the initial ones to be told to the peer.
    private mutating func tellCreditsAgain() {
        forgetDueCredits()
        for (index, credit) in peerPushCredits.enumerated() where credit.needsTelling {
            tellCredit(.method(UInt32(index + 1)))
        }
        for (serial, stream) in peerStreams.elements
        where stream.receive?.needsTelling == true && !stream.hasEnded {
            tellCredit(.requestParts(serial: serial))
        }
        for (serial, stream) in ownStreams.elements where stream.receive.needsTelling {
            tellCredit(.responseParts(serial: serial))
        }
    }

    /// Handles the end of a connection.
    package mutating func disconnected(_ id: UInt64, now: MonotonicTime, into actions: inout [Action]) {
        if life.disconnected(id) { loseConnection(now: now, into: &actions) }
    }

    private mutating func loseConnection(now: MonotonicTime, into actions: inout [Action]) {
        if case .none = life.connection { return }
        life.lost()
        control = []
        forgetDueCredits()
        guard !life.isOver else { return }
        unplaced = []
        for number in unplacedNumbers { actions.append(.messageEnded(number: number, .dropped)) }
        (unplacedNumbers, unplacedPlace) = ([], 0)
        endIfDone(now: now, into: &actions)
    }

    /// Whether frames received over a connection no longer count.
    package func isDone(with id: UInt64) -> Bool { life.isDone(with: id) }

    /// The number of the present connection, or of the last one.
    package var connectionID: UInt64 { life.connectionID }
}

extension ClientOpening {
    /// The highest version that both sides speak; nil when there is none.
    package var commonVersion: UInt32? {
        let version = min(maximumVersion, SessionVersion.highest)
        return version >= max(minimumVersion, SessionVersion.lowest) ? version : nil
    }
}

extension SessionTerms {
    /// Returns the terms of a session whose peer has sent other ones when it came back.
    fileprivate func raised(by later: SessionTerms) -> SessionTerms {
        SessionTerms(
            window: SessionWindow(
                frameCount: max(window.frameCount, later.window.frameCount),
                byteCount: max(window.byteCount, later.window.byteCount)
            ),
            credit: credit,
            maximumRequestCount: later.maximumRequestCount,
            maximumFrameLength: max(maximumFrameLength, later.maximumFrameLength)
        )
    }
}
