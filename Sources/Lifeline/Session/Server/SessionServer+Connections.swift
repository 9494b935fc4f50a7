internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers

// Connections.
extension SessionServer {
    /// Lets the client of a connection in, and calls `whenOver` when the connection is over. No task waits for that: a
    /// task would take 2.4 KB for each connection.
    func serve(
        _ opened: OpenedConnection<SessionServerIntake>,
        whenOver: @escaping @Sendable () -> Void = {}
    ) async {
        let (connection, intake) = (opened.connection, opened.inbox)
        let id = began(connection)
        let session = await admit(intake, connection, id)
        if session == nil { connection.close() }
        intake.closeWhenInputIsOver(connection)
        connection.whenClosed {
            intake.end()
            self.over(id, session)
            whenOver()
        }
    }

    /// Notes that a connection begins. Returns its number.
    private func began(_ connection: any TransportConnection) -> UInt64 {
        let (id, hasEnded) = state.withLockedValue { state in
            state.lastConnection += 1
            state.connections[state.lastConnection] = connection
            return (state.lastConnection, state.hasEnded)
        }
        if hasEnded { connection.abort(.serverShutDown) }
        return id
    }

    /// Notes that a connection is over.
    private func over(_ id: UInt64, _ session: (end: SessionServerEnd, claim: UInt64)?) {
        if let (session, claim) = session {
            session.engine.disconnected(claim)
            let (now, wasUsed) = (clock.now, session.engine.isUsed)
            let isAway = state.withLockedValue { state in
                state.registry.disconnected(id, of: session.sessionID, wasUsed: wasUsed, now: now) != nil
            }
            armTimer()
            if isAway { moveIfDraining(session) }
        }
        let idle = state.withLockedValue { state in
            state.connections[id] = nil
            return state.connections.isEmpty ? state.idle : nil
        }
        idle?.open(with: ())
    }

    /// Lets a client in, or tells it the reason why not. Returns nil if the connection is to be closed.
    private func admit(
        _ intake: SessionServerIntake,
        _ connection: any TransportConnection,
        _ id: UInt64
    ) async -> (SessionServerEnd, claim: UInt64)? {
        let deadline = state.withLockedValue { $0.registry.helloDeadline(now: clock.now) }
        let timeout = timer.run(at: deadline) {
            connection.abort(ConnectionError(code: .idleTimeout, message: "The client did not say hello in time."))
            // A client that has left, and whose goodbye is kept, is not waited for any longer either.
            intake.inputOver.open(with: ())
        }
        defer { timer.cancel(timeout) }
        do {
            let hello = try await intake.hello.waitUninterrupted().get()
            let candidate = SessionCandidate(
                name: hello.name,
                metadata: hello.metadata,
                remoteEndpoint: connection.remoteEndpoint,
                isReturning: hello.credentials != nil
            )
            let identity = try await whileClientIsThere(intake) {
                try await self.configuration.authenticate(candidate)
            }
            return try await letIn(hello, SessionDescription(hello, identity), intake, connection, id)
        } catch {
            if let goodbye = goodbye(for: error, connection) { SessionEngine.say(goodbye, on: connection) }
            return nil
        }
    }

    /// Runs `body`, which takes time before a client can be let in, until the client leaves.
    private func whileClientIsThere<Result: Sendable>(
        _ intake: SessionServerIntake,
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await intake.inputOver.wait()
                throw SessionHelloFailure.ended
            }
            defer { group.cancelAll() }
            guard let result = try await group.next() else { throw SessionHelloFailure.ended }
            // Both tasks may have ended.
            if intake.inputOver.value != nil { throw SessionHelloFailure.ended }
            return result
        }
    }

    /// Gives a client its session, after everything that has to happen before.
    private func letIn(
        _ hello: ClientOpening,
        _ description: SessionDescription,
        _ intake: SessionServerIntake,
        _ connection: any TransportConnection,
        _ id: UInt64
    ) async throws -> (SessionServerEnd, claim: UInt64)? {
        var kept: (client: SessionStoreID, durability: SessionMachine.Durability)?
        var found: SessionFinding?
        // Taken back in any case: by then, a session has the store, or the client gets none.
        defer {
            state.withLockedValue { state in
                state.registry.storeNotOpened(over: id, hello)
                state.registry.soughtFor(id, hello)
            }
            searchEnded(for: id)
        }
        while true {
            let (action, claim) = askRegistry(hello, description, keeping: kept, found, connection, id)
            switch action {
            case .openStore(let client):
                guard let store = configuration.store else { preconditionFailure("The server has no store.") }
                let content = try await whileClientIsThere(intake) { try await store.content(for: client) }
                let byteLimit = configuration.maximumStoredByteCount
                kept = (client, try SessionMachine.Durability(store.id, content, byteLimit: byteLimit))
            case .seek(let claim):
                found = await search(claim, for: id)
            case .adopt(let credentials, let session):
                session.arrived()
                return open(session, credentials, hello, isResumed: true, intake, connection, claim)
            case .endFirst(let session):
                session.endForNext()
                try await whileClientIsThere(intake) { try await session.over() }
                state.withLockedValue { $0.registry.nothingIsLeft(of: session.sessionID, session.storeID) }
            case .refuse(let goodbye):
                SessionEngine.say(goodbye, on: connection)
                return nil
            case .create(let credentials, let session):
                if let depot, let own = state.withLockedValue({ $0.registry.claim(of: session.sessionID) }) {
                    await depot.begin(session, own)
                }
                return open(session, credentials, hello, isResumed: false, intake, connection, claim)
            case .resume(let credentials, let session):
                return open(session, credentials, hello, isResumed: true, intake, connection, claim)
            }
        }
    }

    private func goodbye(for error: any Error, _ connection: any TransportConnection) -> SessionGoodbye? {
        let failure = SessionHelloFailure(error, isCancelled: Task.isCancelled)
        let remote: Logger.Metadata = ["remote": "\(connection.remoteEndpoint)", "error": "\("\(error)".escaped())"]
        switch failure {
        case .ended: break
        case .violation: logger.info("A client opened no session", metadata: remote)
        case .refused: logger.info("A client was refused", metadata: remote)
        case .undecided: logger.warning("A client could not be let in", metadata: remote)
        }
        return state.withLockedValue { $0.registry.goodbye(for: failure) }
    }

    private func askRegistry(
        _ hello: ClientOpening,
        _ description: SessionDescription,
        keeping kept: (client: SessionStoreID, durability: SessionMachine.Durability)?,
        _ found: SessionFinding?,
        _ connection: any TransportConnection,
        _ id: UInt64
    ) -> (SessionRegistry<SessionServerEnd>.HelloAction, claim: UInt64) {
        let (action, claim, forgotten) = state.withLockedValue { state in
            state.lastClaim += 1
            let fresh = SessionCredentials.random(using: &state.random)
            let action = state.registry.receivedHello(
                hello,
                name: description.name,
                of: SessionOrigin(
                    subject: description.identity?.subject,
                    address: connection.remoteEndpoint.address
                ),
                over: id,
                storeIsOpen: kept != nil,
                found: found,
                besides: state.sessions.count - state.registry.count,
                now: clock.now,
                fresh: fresh
            ) {
                SessionServerEnd($0.id, description, keeping: kept, found, of: self) { [weak self] in
                    self?.sessionEnded($0)
                }
            }
            switch action {
            case .create(_, let session), .adopt(_, let session): state.sessions[session.sessionID] = session
            case .resume(_, let session): session.renew(description)
            case .refuse, .openStore, .seek, .endFirst: break
            }
            return (action, state.lastClaim, state.registry.takeForgotten())
        }
        for (_, session) in forgotten { session.engine.end(.madeWay) }
        return (action, claim)
    }

    private func open(
        _ session: SessionServerEnd,
        _ credentials: SessionCredentials,
        _ hello: ClientOpening,
        isResumed: Bool,
        _ intake: SessionServerIntake,
        _ connection: any TransportConnection,
        _ claim: UInt64
    ) -> (SessionServerEnd, claim: UInt64)? {
        // Before the welcome, which the client may answer at once.
        connection.admitPeer()
        let refusal = session.engine.opened(
            by: hello,
            credentials,
            isResumed: isResumed,
            connection,
            as: claim
        ) {
            intake.attach(to: session.engine, as: claim)
        }
        if let refusal {
            SessionEngine.say(refusal, on: connection)
            connection.close()
        }
        return (session, claim)
    }
}

extension SessionCredentials {
    /// Returns credentials that cannot be guessed.
    fileprivate static func random(using generator: inout any RandomNumberGenerator & Sendable) -> SessionCredentials {
        SessionCredentials(
            id: SessionID(generator.next(), generator.next()),
            token: SessionToken(generator.next(), generator.next())
        )
    }
}
