internal import LifelineCore
internal import LifelineRuntime

// How a session goes to another server.
extension SessionEngine {
    /// Lets nothing in any more, and has the session go to another server once nothing of it runs here.
    ///
    /// - Parameters:
    ///   - cancelling: when handlers of requests are cancelled that go on.
    ///   - deadline: when the session stays here after all.
    /// - Returns: what opens with all that the other server needs, when the session is over here; with nil when it stays.
    ///   Nil where it cannot go.
    func move(
        pause: Duration,
        cancelling: MonotonicTime,
        by deadline: MonotonicTime
    ) -> Latch<SessionSnapshot?>? {
        change { state, _ in
            guard state.machine.move(pause: pause, cancelling: cancelling, by: deadline) else { return nil }
            let moved = state.moved ?? Latch()
            state.moved = moved
            return moved
        }
    }

    /// Has a move that is under way cancel handlers earlier.
    func hastenMove(cancelling: MonotonicTime, by deadline: MonotonicTime) {
        change { state, _ in
            if state.machine.isMoving {
                _ = state.machine.move(pause: .zero, cancelling: cancelling, by: deadline)
            }
        }
    }

    func goOnMoving(_ state: inout State, now: MonotonicTime) {
        guard let moved = state.moved else { return }
        finishWatched(&state, now: now)
        let snapshot = state.machine.takeSnapshot(now: now, into: &state.actions)
        // The owner is told first.
        run(&state, now: now)
        if state.machine.isMoving { return }
        state.moved = nil
        state.effects.append(.moved(moved, snapshot))
    }

    /// Whether it is about to go to another server.
    var isMoving: Bool { state.withLock { $0.machine.isMoving } }

    /// Goes on with a session that another server has had.
    func takePromises(of snapshot: SessionSnapshot) {
        let now = clock.now
        state.withLock { state in
            state.machine.takePromises(of: snapshot, now: now)
            for method in snapshot.peerMethods { addRoute(method.name, &state) }
            take(state.machine.lacking, in: &state)
        }
    }
}
