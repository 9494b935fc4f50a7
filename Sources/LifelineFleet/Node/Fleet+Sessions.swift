package import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

// Sessions that go from one node to another.
extension Fleet: SessionDepot {
    /// How long the engine remembers which sessions a node has that says so no more: 10 minutes, several times as long as
    /// a session outlives its connection.
    private static var claimLifetime: Duration { .seconds(600) }
    /// How long a client that begins a session waits for the engine at most: 1 s. Until the engine knows the session, it
    /// cannot move.
    private static var claimPatience: Duration { .seconds(1) }
    /// How long it is tried to leave a session in the engine: 5 s.
    private static var parkPatience: Duration { .seconds(5) }

    package var isShared: Bool { engine.isShared }

    package func begin(_ session: SessionServerEnd, _ claim: SessionClaim) async {
        transfers.withLockedValue { $0.began(session, claim) }
        let claimed = Latch<Void>()
        Task.detached {
            await self.claim([FleetSession(claim)])
            claimed.open(with: ())
        }
        await clock.race(until: clock.now + Self.claimPatience) { try? await claimed.wait() }
    }

    private func claim(_ sessions: [FleetSession]) async {
        do {
            try await engine.claim(sessions, for: nodeName, lifetime: Self.claimLifetime)
        } catch {
            // The next round tries it again.
            if !Task.isCancelled {
                logger.warning("The engine was not told of sessions", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Tells the engine again and again which sessions this node has, until the task is cancelled.
    func keepClaims() async {
        while !Task.isCancelled {
            await clock.race(until: clock.now + Self.claimLifetime / 3) { await self.claimBell.wait() }
            let sessions = transfers.withLockedValue { $0.all }
            // Some hundreds at once, as others wait.
            for start in stride(from: 0, to: sessions.count, by: 256) where !Task.isCancelled {
                let chunk = sessions[start..<min(start + 256, sessions.count)]
                await claim(chunk.compactMap(\.claim).map { FleetSession($0) })
            }
        }
    }

    // MARK: Sessions that go

    package func park(_ session: SessionServerEnd, _ claim: SessionClaim, _ snapshot: SessionSnapshot) async -> Bool {
        await transfers.withLockedValue { $0.departure(of: session) }?.waitUninterrupted()
        let memberships = transfers.withLockedValue { $0.memberships(of: session) }
        defer { transfers.withLockedValue { $0.departed(session) }?.open(with: ()) }
        let parked = Lifeline_Fleet_V1_ParkedSession(snapshot, subject: claim.subject, memberships)
        // To its end, whatever becomes of this task: nobody else has the session.
        return await Task.detached { await self.park(parked, claim, lifetime: session.keptDuration) }.value
    }

    private func park(
        _ parked: Lifeline_Fleet_V1_ParkedSession,
        _ claim: SessionClaim,
        lifetime: Duration
    ) async -> Bool {
        let deadline = clock.now + Self.parkPatience
        while true {
            do {
                let bytes = try parked.serializedBytes()
                try await engine.park(bytes, of: FleetSession(claim), by: nodeName, lifetime: lifetime)
                return true
            } catch {
                logger.warning("A session cannot be left in the engine", metadata: ["error": "\(error)"])
                guard clock.now < deadline, !(error is MessageError) else { return false }
                try? await clock.sleep(until: clock.now + SessionSearch.retryDelay)
            }
        }
    }

    /// A node has told this one something.
    func told(_ bytes: [UInt8]) {
        guard let message = try? Lifeline_Fleet_V1_NodeMessage(serializedBytes: bytes) else { return }
        switch message.content {
        case .handOver(let request): handOver(request)
        case .handedOver(let answer):
            guard let id = SessionID([UInt8](answer.sessionID)), let result = SessionSearch.Answer(answer.result) else {
                return
            }
            transfers.withLockedValue { $0.answered(id, attempt: answer.attempt, result) }?.ring()
        case nil: break
        }
    }

    private func handOver(_ request: Lifeline_Fleet_V1_HandOver) {
        guard let claim = SessionClaim(request),
            transfers.withLockedValue({ $0.beginHandOver(claim.credentials.id) })
        else { return }
        let (session, isOnItsWay) = transfers.withLockedValue {
            ($0.session(claim.credentials.id), $0.onItsWay(claim.credentials.id))
        }
        Task.detached {
            // It may have gone by itself, and the engine does not have it yet.
            await isOnItsWay?.waitUninterrupted()
            let result = isOnItsWay == nil ? await session?.server.handOver(claim) ?? .unknown : .parked
            self.transfers.withLockedValue { $0.endHandOver(claim.credentials.id) }
            await self.tell(
                .with {
                    $0.handedOver = .with {
                        $0.sessionID = claim.credentials.id.bytes
                        $0.attempt = claim.attempt
                        $0.result = .init(result)
                    }
                },
                to: request.node
            )
        }
    }

    @discardableResult
    private func tell(_ message: Lifeline_Fleet_V1_NodeMessage, to node: String) async -> Bool {
        do {
            return try await engine.tell(message.serializedBytes(), to: node)
        } catch {
            logger.warning("A node cannot be told something", metadata: ["error": "\(error)"])
            return false
        }
    }

    // MARK: Sessions that come

    package func find(_ claim: SessionClaim) async -> SessionFinding {
        let bell = Doorbell()
        transfers.withLockedValue { $0.beginSearch(claim, bell) }
        defer { transfers.withLockedValue { $0.endSearch(claim) } }
        switch await search(claim, bell) {
        case .nothing: return .nothing
        case .stale: return .stale
        case .notNow: return .notNow
        case .state(let bytes):
            guard let parked = try? Lifeline_Fleet_V1_ParkedSession(serializedBytes: bytes),
                let snapshot = parked.snapshot
            else {
                logger.warning("The state of a session cannot be read. Do all servers have one version of Lifeline?")
                return .nothing
            }
            // It is lost to a client that is somebody else.
            guard (parked.hasSubject ? parked.subject : nil) == claim.subject else { return .nothing }
            transfers.withLockedValue { $0.found(claim, Array(parked.memberships)) }
            return .snapshot(snapshot)
        }
    }

    private func search(_ claim: SessionClaim, _ bell: Doorbell) async -> SessionSearch.Finding {
        let session = FleetSession(claim)
        var search = SessionSearch(now: clock.now)
        var step = SessionSearch.Step.take
        while true {
            switch step {
            case .end(let finding):
                return finding
            case .take:
                do {
                    step = search.took(try await engine.take(session, for: nodeName), now: clock.now)
                } catch {
                    step = failed(&search, error)
                }
            case .confirm:
                do {
                    let lifetime = Self.claimLifetime
                    step = search.confirmed(try await engine.confirm(session, by: nodeName, lifetime: lifetime))
                } catch {
                    step = failed(&search, error)
                }
            case .ask(let node):
                let isHeard = await tell(.with { $0.handOver = .init(claim, from: nodeName) }, to: node)
                step = search.told(isHeard: isHeard, now: clock.now)
            case .wait(let deadline):
                await clock.race(until: deadline) { await bell.wait() }
                step = search.waited(transfers.withLockedValue { $0.takeAnswer(claim) }, now: clock.now)
            }
        }
    }

    private func failed(_ search: inout SessionSearch, _ error: any Error) -> SessionSearch.Step {
        logger.warning("The engine cannot be asked for a session", metadata: ["error": "\(error)"])
        return search.failed(now: clock.now)
    }
}

extension FleetSession {
    init(_ claim: SessionClaim) {
        self.init(
            id: "\(claim.credentials.id)",
            proof: claim.credentials.token.bytes,
            attempt: claim.attempt
        )
    }
}

extension SessionClaim {
    /// Nil for what is none.
    fileprivate init?(_ request: Lifeline_Fleet_V1_HandOver) {
        guard let id = SessionID([UInt8](request.sessionID)), let token = SessionToken([UInt8](request.token)) else {
            return nil
        }
        self.init(
            credentials: SessionCredentials(id: id, token: token),
            attempt: request.attempt,
            subject: request.hasSubject ? request.subject : nil
        )
    }
}

extension Lifeline_Fleet_V1_HandOver {
    fileprivate init(_ claim: SessionClaim, from node: String) {
        self.init()
        (sessionID, token) = (claim.credentials.id.bytes, claim.credentials.token.bytes)
        attempt = claim.attempt
        if let subject = claim.subject { self.subject = subject }
        self.node = node
    }
}

extension Lifeline_Fleet_V1_HandedOver.Result {
    fileprivate init(_ result: SessionHandOver) {
        self =
            switch result {
            case .parked: .parked
            case .unknown: .unknown
            case .stale: .stale
            case .notNow: .busy
            }
    }
}

extension SessionSearch.Answer {
    fileprivate init?(_ result: Lifeline_Fleet_V1_HandedOver.Result) {
        switch result {
        case .parked: self = .parked
        case .unknown: self = .unknown
        case .stale: self = .stale
        case .busy: self = .busy
        case .UNRECOGNIZED: return nil
        }
    }
}
