internal import LifelineCore
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

// Sessions that move to other servers of a fleet.
extension SessionServer {
    /// The time after which handlers of requests are cancelled if the session's client is already at another server: a
    /// second, in which nearly all return.
    private static var handlerGrace: Duration { .seconds(1) }
    /// The longest time that a session may take to come to rest: 4 s, so that its client, which waits at another
    /// server, hears of it before it gives up.
    private static var movePatience: Duration { .seconds(4) }

    /// Hands a session over to another server, which asks for it because the client is there.
    package func handOver(_ claim: SessionClaim) async -> SessionHandOver {
        let (owner, move) = state.withLockedValue { state in
            (state.registry.handOver(claim), state.moves[claim.credentials.id])
        }
        // The session is moving, and for a moment no server may know it.
        if let move { return await move.waitUninterrupted() ? .parked : .busy }
        return switch owner {
        case .unknown: .unknown
        case .stale: .stale
        case .session(let session): await self.move(session, cancellingIn: Self.handlerGrace) ? .parked : .busy
        }
    }

    /// Leaves a session in the depot. Returns whether it is there. A session has one move at a time; other calls wait
    /// for it.
    ///
    /// - Parameter grace: the time after which handlers of requests are cancelled.
    @discardableResult
    private func move(_ session: SessionServerEnd, cancellingIn grace: Duration) async -> Bool {
        guard let depot, depot.isShared else { return false }
        let parked = Latch<Bool>()
        let (other, claim, pause) = state.withLockedValue { state in
            let other = state.moves[session.sessionID]
            if other == nil { state.moves[session.sessionID] = parked }
            return (other, state.registry.claim(of: session.sessionID), state.registry.movePause())
        }
        let now = clock.now
        let (cancelling, deadline) = (now + grace, now + grace + (Self.movePatience - Self.handlerGrace))
        if let other {
            session.engine.hastenMove(cancelling: cancelling, by: deadline)
            return await other.waitUninterrupted()
        }
        var isParked = false
        if let claim, let moved = session.engine.move(pause: pause, cancelling: cancelling, by: deadline),
            let snapshot = await moved.waitUninterrupted()
        {
            isParked = await depot.park(session, claim, snapshot)
            if !isParked { wasNotParked(session, snapshot) }
        }
        state.withLockedValue { $0.moves[session.sessionID] = nil }
        parked.open(with: isParked)
        return isParked
    }

    private func wasNotParked(_ session: SessionServerEnd, _ snapshot: SessionSnapshot) {
        session.logger.warning("The session could not be left for another server, and is lost")
        let inDoubt = snapshot.messagesInDoubt
        if !inDoubt.isEmpty { configuration.whenInDoubt(session, inDoubt) }
    }

    /// Moves a session without a connection if the server goes away. It then waits for its client elsewhere.
    func moveIfDraining(_ session: SessionServerEnd) {
        guard depot?.isShared == true, state.withLockedValue({ $0.registry.isDraining }) else { return }
        Task.detached { await self.move(session, cancellingIn: Self.handlerGrace) }
    }

    /// Leaves all sessions in the depot that can move, including those that are still on their way here. Waits until
    /// they are there.
    func moveAll() async {
        guard depot?.isShared == true else { return }
        for search in state.withLockedValue({ Array($0.searches.values) }) { await search.waitUninterrupted() }
        await withDiscardingTaskGroup { tasks in
            for session in sessions {
                tasks.addTask { await self.move(session, cancellingIn: .zero) }
            }
            for move in state.withLockedValue({ Array($0.moves.values) }) {
                tasks.addTask { _ = await move.waitUninterrupted() }
            }
        }
    }

    /// Looks for a session at other servers.
    func search(_ claim: SessionClaim, for connection: UInt64) async -> SessionFinding {
        state.withLockedValue { $0.searches[connection] = Latch() }
        // The search runs to its end even if the connection or this task ends: a session that it finds is nowhere else.
        return await Task.detached { await self.depot?.find(claim) ?? .nothing }.value
    }

    /// Notes that a search is over. A session that was found now belongs to this server.
    func searchEnded(for connection: UInt64) {
        state.withLockedValue { $0.searches.removeValue(forKey: connection) }?.open(with: ())
    }
}

extension SessionServerEnd {
    /// The claim of the session's client; nil if the session is over, or cannot move to other servers.
    package var claim: SessionClaim? { server.state.withLockedValue { $0.registry.claim(of: sessionID) } }

    /// Whether the session continues at another server.
    package var hasMoved: Bool { if case .moved? = engine.endReason { true } else { false } }

    /// The time for which the session is kept without a connection.
    package var keptDuration: Duration { max(server.configuration.keptDuration, .zero) }
}
