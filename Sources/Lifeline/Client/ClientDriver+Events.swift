internal import LifelineCore
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// What happens to the client, and what its machines make of it.
extension ClientDriver {
    // MARK: The user's wishes

    /// `run()` begins. False when it has before.
    func start() -> Bool {
        change { state, effects, now in
            if state.hasStarted { return false }
            state.hasStarted = true
            perform(state.manager.start(now: now), in: &state, &effects)
            return true
        }
    }

    func requestReconnect() {
        change { state, effects, now in
            cutWhatCloses(.reconnectRequested, in: &state, &effects)
            perform(state.manager.reconnectRequested(now: now), in: &state, &effects)
        }
    }

    /// Closes in order, or joins a close that is under way.
    func requestClose() {
        change { state, effects, now in beginClose(in: &state, &effects, now) }
    }

    /// The user's own close. The second time, what is still to be written is given up.
    func requestCloseByUser() {
        change { state, effects, now in
            beginClose(in: &state, &effects, now)
            if state.userHasClosed { cutClose(in: &state, &effects, now) }
            state.userHasClosed = true
        }
    }

    /// Closes at once: whoever waits for a close has no patience.
    func requestCut() {
        change { state, effects, now in
            beginClose(in: &state, &effects, now)
            cutClose(in: &state, &effects, now)
        }
    }

    private func beginClose(in state: inout State, _ effects: inout Effects, _ now: MonotonicTime) {
        if state.manager.state == .draining { return }
        perform(state.manager.closeRequested(now: now), in: &state, &effects)
    }

    /// What a close that was begun still writes is given up.
    private func cutClose(in state: inout State, _ effects: inout Effects, _ now: MonotonicTime) {
        cutWhatCloses(.closedByUser, in: &state, &effects)
        perform(state.manager.closeRequested(now: now), in: &state, &effects)
    }

    func cancel() {
        change { state, effects, now in
            cutWhatCloses(.cancelled, in: &state, &effects)
            perform(state.manager.cancelled(now: now), in: &state, &effects)
        }
    }

    /// Cuts a connection that the peer has ended and that still writes what was accepted.
    private func cutWhatCloses(
        _ reason: TransitionReason.Code,
        in state: inout State,
        _ effects: inout Effects
    ) {
        guard let open = state.open, open.closeDeadline != nil else { return }
        state.open?.closeDeadline = nil
        effects.aborted.append((open.connection, TransitionReason(reason).asError))
    }

    // MARK: Network and time

    func networkChanged(_ status: NetworkStatus) {
        change { state, effects, now in
            switch status {
            case .available:
                perform(state.manager.networkUp(now: now), in: &state, &effects)
            case .unavailable:
                cutWhatCloses(.networkLost, in: &state, &effects)
                perform(state.manager.networkLost(now: now), in: &state, &effects)
            }
        }
    }

    /// When the timer is to ring; nil: when `timerBell` does.
    func nextDeadline() -> MonotonicTime? {
        state.withLockedValue { state in
            state.armedDeadline = state.nextDeadline
            return state.armedDeadline
        }
    }

    /// A deadline may have come.
    func timerFired() {
        change { state, effects, now in
            perform(state.manager.timerFired(now: now), in: &state, &effects)
            end(state.queue.timerFired(now: now), in: &state, &effects)
            if let open = state.open, let deadline = open.closeDeadline, now >= deadline {
                state.open?.closeDeadline = nil
                effects.aborted.append((open.connection, .peerReadsTooSlowly))
            }
            if state.sleepWatch?.timerFired(now: now) == true, let open = state.open {
                effects.probed.append(open.connection)
            }
        }
    }

    // MARK: The attempt

    /// The attempt succeeded. False when it was given up meanwhile; the connection is of no use then.
    func connected(_ attempt: Attempt, _ connection: any TransportConnection) -> Bool {
        change { state, effects, now in
            guard state.attempt === attempt else { return false }
            state.open = Open(attempt: attempt, connection: connection)
            perform(state.manager.connected(attempt.id, now: now), in: &state, &effects)
            if state.endedEarly == attempt.id { peerEnded(attempt.id, in: &state, &effects, now) }
            return true
        }
    }

    func connectFailed(_ attempt: Attempt, _ error: ConnectionError) {
        change { state, effects, now in
            perform(state.manager.connectFailed(attempt.id, error, now: now), in: &state, &effects)
        }
    }

    /// The peer ended its side in order: what was accepted is still written, and then this is over.
    func inputEnded(_ id: ConnectionManager.ConnectionID) {
        change { state, effects, now in
            if state.open == nil, state.attempt?.id == id {
                state.endedEarly = id
            } else {
                peerEnded(id, in: &state, &effects, now)
            }
        }
    }

    private func peerEnded(
        _ id: ConnectionManager.ConnectionID,
        in state: inout State,
        _ effects: inout Effects,
        _ now: MonotonicTime
    ) {
        guard let open = state.open, open.attempt.id == id, state.manager.state == .ready else { return }
        effects.closing.append(open.connection)
        // The connection's own limit counts from the last progress, which a peer can make for ever.
        state.open?.closeDeadline = now + closeTimeout
        perform(state.manager.connectionEnded(id, .ended(by: nil), now: now), in: &state, &effects)
    }

    /// The connection is no more.
    ///
    /// - Parameter receivedCount: How many messages have been received until now.
    func connectionClosed(_ attempt: Attempt, _ report: ClosureReport, receivedCount: Int) {
        change { state, effects, now in
            guard let open = state.open, open.attempt === attempt else { return }
            state.open = nil
            state.receivedCount = receivedCount
            let fate = MessageCounts(report)
            if let step = open.heldStep {
                effects.wakeups.append(
                    history.complete(step, fate, messagesBefore: receivedCount)
                )
                return
            }
            let isDraining = state.manager.state == .draining
            let failure = report.failure ?? (isDraining && !report.peerEndedInTime ? .peerDidNotEnd : nil)
            let reason = isDraining && failure == nil ? TransitionReason(.drained) : .ended(by: failure)
            // A silent peer has been there until it last spoke, which may be never.
            let never = MonotonicTime(nanoseconds: .min)
            let actions = state.manager.connectionEnded(
                attempt.id,
                reason,
                lastSignOfLife: reason.code == .heartbeatTimeout ? report.lastInboundAt ?? never : nil,
                now: now
            )
            perform(actions, in: &state, &effects, fate)
        }
    }
}

// What the manager decided.
extension ClientDriver {
    private func perform(
        _ actions: [ConnectionManager.Action],
        in state: inout State,
        _ effects: inout Effects,
        _ fate: MessageCounts? = nil
    ) {
        for action in actions {
            switch action {
            case .transition(let transition):
                record(transition, fate, in: &state, &effects)
                moveQueue(transition, in: &state, &effects)
            case .connect(let id):
                let attempt = Attempt(id: id)
                (state.attempt, state.nextAttempt) = (attempt, attempt)
                effects.wakesLoop = true
            case .abort(let id, let reason):
                giveUp(id, reason, in: &state, &effects)
            case .drain(let id):
                if let open = state.open, open.attempt.id == id { effects.closing.append(open.connection) }
            case .probe(let id):
                if let open = state.open, open.attempt.id == id { effects.probed.append(open.connection) }
            }
        }
    }

    private func giveUp(
        _ id: ConnectionManager.ConnectionID,
        _ reason: TransitionReason,
        in state: inout State,
        _ effects: inout Effects
    ) {
        if let attempt = state.attempt, attempt.id == id {
            effects.givenUp.append((attempt, reason.asError))
            state.attempt = nil
        }
        if state.nextAttempt?.id == id { state.nextAttempt = nil }
        if let open = state.open, open.attempt.id == id { effects.aborted.append((open.connection, reason.asError)) }
    }

    private func record(
        _ transition: ConnectionTransition,
        _ fate: MessageCounts?,
        in state: inout State,
        _ effects: inout Effects
    ) {
        // A connection that is ended from this side has something to report first.
        let isHeld = state.open != nil && state.open?.heldStep == nil && transition.endsConnection
        if isHeld { state.open?.heldStep = transition.number }
        let isAttempt = transition.to == .connecting
        effects.transitions.append((transition, isReconnect: isAttempt && state.hasTried))
        if isAttempt { state.hasTried = true }
        effects.wakeups.append(
            history.append(
                transition,
                fate,
                messagesBefore: state.receivedCount,
                isHeld: isHeld
            )
        )
        if transition.to == .closed {
            effects.wakesLoop = true
            // Nobody else tells when nothing runs.
            if !state.hasStarted { effects.isClosed = true }
        }
    }

    /// Tells the queue of sends of a step.
    private func moveQueue(_ transition: ConnectionTransition, in state: inout State, _ effects: inout Effects) {
        state.sleepWatch = nil
        switch transition.to {
        case .ready:
            state.queue.becameReady()
            if state.queue.count == 0 { state.openDirectPath() }
            state.sleepWatch = sleepWatchInterval.map { SleepWatch(interval: $0, now: transition.time) }
        case .draining, .closed:
            state.direct = nil
            end(state.queue.closed(.clientClosed), in: &state, &effects)
        case .idle, .waitingForNetwork, .connecting, .backingOff, .gaveUp:
            state.direct = nil
            end(state.queue.becameUnready(), in: &state, &effects)
        }
    }
}

extension ClientDriver.State {
    /// Nothing waits any more.
    mutating func openDirectPath() {
        direct = open.map { ClientDriver.DirectPath(connection: $0.connection, id: $0.attempt.id) }
    }
}

extension ConnectionTransition {
    /// Whether there was a connection before it, and none after.
    var endsConnection: Bool { from == .draining || (from == .ready && to != .draining) }
}

extension ConnectionError {
    fileprivate static var peerReadsTooSlowly: ConnectionError {
        ConnectionError(
            code: .closedLocally,
            message: "The peer ended its side and did not take what was still to be written in time."
        )
    }

    fileprivate static var peerDidNotEnd: ConnectionError {
        ConnectionError(
            code: .closedLocally,
            message: "All was written, but the peer did not end its side in time; whether it has read all is not known."
        )
    }

    /// In order.
    static var peerEnded: ConnectionError {
        ConnectionError(code: .closedByPeer, message: "The peer ended its side of the connection.")
    }

    static var clientClosed: ConnectionError {
        ConnectionError(code: .closedLocally, message: "The client is closed. Make another one to go on.")
    }
}
