internal import LifelineCore
internal import LifelineRuntime

// Sessions that move to another server.
extension SessionEngine {
    /// Stops receiving, and moves the session to another server once none of its work runs here.
    ///
    /// - Parameters:
    ///   - cancelling: the time at which handlers that still run are cancelled.
    ///   - deadline: the time at which the move is given up, and the session stays here.
    /// - Returns: a latch that opens with the snapshot for the other server when the session is over here, or with nil
    ///   when it stays; nil if it cannot move.
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

    /// Makes a move that is under way cancel handlers earlier.
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
        // The owner hears of the end before the move is reported.
        run(&state, now: now)
        if state.machine.isMoving { return }
        state.moved = nil
        state.effects.append(.moved(moved, snapshot))
    }

    /// Whether the session is about to move to another server.
    var isMoving: Bool { state.withLock { $0.machine.isMoving } }

    /// Continues a session that another server had.
    func takePromises(of snapshot: SessionSnapshot) {
        let now = clock.now
        state.withLock { state in
            state.machine.takePromises(of: snapshot, now: now)
            for method in snapshot.peerMethods { addRoute(method.name, &state) }
            take(state.machine.lacking, in: &state)
        }
    }
}
