internal import LifelineCore
internal import LifelineRuntime
internal import Logging
internal import NIOConcurrencyHelpers

// Sessions that go to other servers of a fleet.
extension SessionServer {
    /// How long handlers of requests may go on when a session's client is at another server already: then they are
    /// cancelled. A second, in which nearly all are done.
    private static var handlerGrace: Duration { .seconds(1) }
    /// How long a session may take to come to rest: 4 s, so that its client, which waits at another server, hears of it
    /// before it gives up.
    private static var movePatience: Duration { .seconds(4) }

    /// Another server asks for a session, as its client is there.
    package func handOver(_ claim: SessionClaim) async -> SessionHandOver {
        switch state.withLockedValue({ $0.registry.handOver(claim) }) {
        case .unknown: .unknown
        case .stale: .stale
        case .session(let session):
            await move(session, cancelling: clock.now + Self.handlerGrace) ? .parked : .notNow
        }
    }

    /// Leaves a session in the depot. Returns whether it is there.
    ///
    /// - Parameter cancelling: when handlers of requests are cancelled that go on.
    @discardableResult
    func move(_ session: SessionServerEnd, cancelling: MonotonicTime) async -> Bool {
        guard let depot else { return false }
        let parked = Latch<Bool>()
        let (other, claim, pause) = state.withLockedValue { state in
            let other = state.moves[session.sessionID]
            if other == nil { state.moves[session.sessionID] = parked }
            return (other, state.registry.claim(of: session.sessionID), state.registry.movePause())
        }
        let deadline = cancelling + (Self.movePatience - Self.handlerGrace)
        if let other {
            // Handlers may be to be cancelled earlier.
            _ = session.engine.move(pause: pause, cancelling: cancelling, by: deadline)
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

    /// The server goes away: a session whose client is not there any more waits for it elsewhere.
    func moveIfDraining(_ session: SessionServerEnd) {
        guard depot != nil, state.withLockedValue({ $0.registry.isDraining }) else { return }
        Task.detached { await self.move(session, cancelling: self.clock.now + Self.handlerGrace) }
    }

    /// Leaves all sessions in the depot that can be. Waits until they are there.
    func moveAll() async {
        guard depot != nil else { return }
        let now = clock.now
        await withDiscardingTaskGroup { tasks in
            for session in sessions {
                tasks.addTask { await self.move(session, cancelling: now) }
            }
            for move in state.withLockedValue({ Array($0.moves.values) }) {
                tasks.addTask { _ = await move.waitUninterrupted() }
            }
        }
    }

    /// Goes on with a session that was found. Nobody else has it any more, so that it has to be kept, whatever becomes of
    /// the connection.
    func arrived(_ session: SessionServerEnd) {
        session.logger.debug("The session has come from another server")
        for service in services { service.sessionOpened(session) }
        if state.withLockedValue({ $0.hasEnded }) {
            Task.detached { await self.move(session, cancelling: self.clock.now) }
        }
    }
}
