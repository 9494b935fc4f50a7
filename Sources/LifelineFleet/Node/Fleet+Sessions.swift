package import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

// The move of sessions from one node to another.
extension Fleet: SessionDepot {
    /// How long the engine keeps a claim that its node does not renew: 10 minutes, several times as long as a session
    /// outlives its connection.
    private static var claimLifetime: Duration { .seconds(600) }
    /// How long a client that begins a session waits for the engine at most: 1 s. The session cannot move before the
    /// engine knows it.
    private static var claimPatience: Duration { .seconds(1) }
    /// How long this node tries to park a session in the engine: 5 s.
    private static var parkPatience: Duration { .seconds(5) }

    package var isShared: Bool { engine.isShared }

    package func begin(_ session: SessionServerEnd, _ claim: SessionClaim) async {
        let claimed = Latch<Void>()
        Task.detached {
            // The next round tries it again, at once.
            if !(await self.claim([FleetSession(claim)])) { self.claimBell.ring() }
            claimed.open(with: ())
        }
        await clock.race(until: clock.now + Self.claimPatience) { try? await claimed.wait() }
    }

    /// Claims sessions. Returns whether the engine knows them.
    private func claim(_ sessions: [FleetSession]) async -> Bool {
        do {
            try await engine.claim(sessions, for: nodeName, lifetime: Self.claimLifetime)
            return true
        } catch {
            if !Task.isCancelled {
                logger.warning("The engine was not told of sessions", metadata: ["error": "\(error)"])
            }
            return false
        }
    }

    /// Renews the claims of this node's sessions in the engine, until the task is cancelled.
    func keepClaims() async {
        var pause = Self.claimLifetime / 3
        while !Task.isCancelled {
            await clock.race(until: clock.now + pause) { await self.claimBell.wait() }
            pause = Self.claimLifetime / 3
            let sessions = transfers.withLockedValue { $0.all }
            // Some hundreds at once, because other calls wait.
            for start in stride(from: 0, to: sessions.count, by: 256) where !Task.isCancelled {
                let chunk = sessions[start..<min(start + 256, sessions.count)]
                guard await claim(chunk.compactMap(\.claim).map { FleetSession($0) }) else {
                    pause = Self.claimPatience
                    break
                }
            }
        }
    }

    // MARK: Sessions that go

    package func park(_ session: SessionServerEnd, _ claim: SessionClaim, _ snapshot: SessionSnapshot) async -> Bool {
        await transfers.withLockedValue { $0.departure(of: session) }?.waitUninterrupted()
        let memberships = transfers.withLockedValue { $0.memberships(of: session) }
        defer { transfers.withLockedValue { $0.departed(session) } }
        let parked = Lifeline_Fleet_V1_ParkedSession(snapshot, subject: claim.subject, memberships)
        // Runs to its end even if this task is cancelled, because no other node has the session.
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

    /// Handles a message from another node.
    func told(_ bytes: [UInt8]) {
        guard let message = try? Lifeline_Fleet_V1_NodeMessage(serializedBytes: bytes) else { return }
        switch message.content {
        case .handOver(let request): handOver(request)
        case .handedOver(let answer):
            guard let id = SessionID([UInt8](answer.sessionID)), let result = SessionHandOver(answer.result) else {
                return
            }
            transfers.withLockedValue { $0.answered(id, attempt: answer.attempt, result) }?.ring()
        case nil: break
        }
    }

    private func handOver(_ request: Lifeline_Fleet_V1_HandOver) {
        guard let claim = SessionClaim(request) else { return }
        let id = claim.credentials.id
        let (node, isOwn) = (request.node, request.node == nodeName)
        let handOver = transfers.withLockedValue { transfers in
            transfers.silentNodes.heard(node)
            return transfers.beginHandOver(id, isOwn: isOwn)
        }
        switch handOver {
        case .noAnswer: break
        case .unknown: Task.detached { await self.answer(claim, .unknown, to: node) }
        case .ask(let session):
            Task.detached {
                let result = await session.server.handOver(claim)
                self.transfers.withLockedValue { $0.endHandOver(id) }
                await self.answer(claim, result, to: node)
            }
        }
    }

    private func answer(_ claim: SessionClaim, _ result: SessionHandOver, to node: String) async {
        let message = Lifeline_Fleet_V1_NodeMessage.with {
            $0.handedOver = .with {
                $0.sessionID = claim.credentials.id.bytes
                $0.attempt = claim.attempt
                $0.result = .init(result)
            }
        }
        do {
            _ = try await engine.tell(message.serializedBytes(), to: node)
        } catch {
            logger.warning("A node cannot be answered", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Sessions that come

    package func find(_ claim: SessionClaim) async -> SessionFinding {
        let bell = Doorbell()
        transfers.withLockedValue { $0.beginSearch(claim, bell) }
        let (finding, memberships) = await search(claim, bell)
        transfers.withLockedValue { $0.endSearch(claim, found: memberships) }
        return finding
    }

    private typealias Membership = Lifeline_Fleet_V1_ParkedSession.Membership

    /// Searches for a session. Also returns the groups of a session that was found.
    private func search(_ claim: SessionClaim, _ bell: Doorbell) async -> (SessionFinding, [Membership]?) {
        let session = FleetSession(claim)
        var search = SessionSearch(now: clock.now)
        var step = SessionSearch.Step.take
        var memberships: [Membership]?
        while true {
            switch step {
            case .end(let finding):
                if case .snapshot = finding { return (finding, memberships) }
                return (finding, nil)
            case .take:
                do {
                    let take = try await engine.take(session, for: nodeName)
                    var snapshot: SessionSnapshot?
                    if case .state(let bytes) = take { (snapshot, memberships) = read(bytes, of: claim) }
                    step = search.took(take, snapshot, now: clock.now)
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
                let message = Lifeline_Fleet_V1_NodeMessage.with { $0.handOver = .init(claim, from: nodeName) }
                do {
                    let isHeard = try await engine.tell(message.serializedBytes(), to: node)
                    step = transfers.withLockedValue {
                        search.told(isHeard: isHeard, &$0.silentNodes, now: clock.now)
                    }
                } catch {
                    step = failed(&search, error)
                }
            case .lookAtLease(let node):
                do {
                    step = search.lookedAtLease(isAlive: try await !engine.liveNodes(among: [node]).isEmpty)
                } catch {
                    step = failed(&search, error)
                }
            case .wait(let deadline):
                await clock.race(until: deadline) { await bell.wait() }
                step = search.waited(transfers.withLockedValue { $0.takeAnswer(claim) }, now: clock.now)
            }
        }
    }

    /// Reads a session's state. Returns nil when this node cannot continue it, or it belongs to another client.
    private func read(_ bytes: [UInt8], of claim: SessionClaim) -> (SessionSnapshot?, [Membership]?) {
        guard let parked = try? Lifeline_Fleet_V1_ParkedSession(serializedBytes: bytes),
            let snapshot = parked.snapshot
        else {
            logger.warning("The state of a session cannot be read. Do all servers have one version of Lifeline?")
            return (nil, nil)
        }
        guard (parked.hasSubject ? parked.subject : nil) == claim.subject else { return (nil, nil) }
        return (snapshot, Array(parked.memberships))
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
    /// Makes a claim; nil for a malformed request.
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
            case .busy: .busy
            }
    }
}

extension SessionHandOver {
    /// Makes an answer; nil for one of a later version of Lifeline.
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
