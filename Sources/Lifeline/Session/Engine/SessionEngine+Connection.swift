internal import LifelineCore
internal import LifelineMessages
internal import LifelineProtos
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// Connections: what comes in over one, and what goes out.
extension SessionEngine {
    /// What frames are put together up to, for one write: 64 KiB, as much as most reads take.
    private static var writeSize: Int { 64 << 10 }
    /// What of that is kept between writes: 1 KiB, enough for some small messages.
    private static var keptBufferSize: Int { 1 << 10 }

    /// A client has a connection.
    func connected(_ connection: any TransportConnection, as id: UInt64) {
        change { state, now in
            // A session that has ended needs none.
            guard state.end == nil else { return state.effects.append(.close(connection, nil)) }
            state.outlet = Outlet(id: id, connection: connection)
            perform(state.machine.connected(now: now), in: &state)
        }
    }

    /// A client has opened a connection to this server, which takes it for this session.
    ///
    /// - Parameters:
    ///   - id: ascending: of two that claim the session, the one with the higher has it.
    /// - Returns: why it does not; nil when it does.
    func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        _ connection: any TransportConnection,
        as id: UInt64
    ) -> SessionGoodbye? {
        change { state, now in
            // It was about to be forgotten: the client comes back and begins another one.
            guard state.end == nil else { return SessionGoodbye(.draining, "The session has just ended.") }
            guard state.lastClaim < id else {
                return SessionGoodbye(.replaced, "A newer connection has the session.")
            }
            state.lastClaim = id
            if let older = state.outlet {
                let linesUp = Self.say(
                    SessionGoodbye(.replaced, "Another connection goes on with the session."),
                    on: older.connection
                )
                state.effects.append(
                    linesUp ? .closeAfterGoodbye(older.connection, nil) : .close(older.connection, nil)
                )
            }
            state.outlet = Outlet(id: id, connection: connection)
            let actions = state.machine.opened(by: hello, credentials, isResumed: isResumed, now: now)
            perform(actions, in: &state)
            return nil
        }
    }

    /// A connection is gone.
    func disconnected(_ id: UInt64) {
        change { state, now in
            guard state.outlet?.id == id else { return }
            state.outlet = nil
            state.closing = nil
            state.isPeerLeaving = false
            perform(state.machine.disconnected(now: now), in: &state)
        }
    }

    /// Whatever connection there is, is gone as far as the session goes.
    func leave() {
        if let id = state.withLockedValue({ $0.outlet?.id }) { disconnected(id) }
    }

    /// A frame came in. Call `batchEnded` after those that came together: what comes of them waits for that.
    ///
    /// - Returns: whether the connection goes on.
    @discardableResult
    func received(_ frame: Lifeline_Session_V1_Frame, byteCount: Int, on id: UInt64) -> Bool {
        let now = clock.now
        return state.withLockedValue { state in
            guard state.outlet?.id == id else { return false }
            do throws(SessionViolation) {
                let frame = try SessionFrame(frame, byteCount: byteCount, now: now)
                allow(frame, in: &state)
                perform(state.machine.received(frame, now: now), in: &state)
            } catch {
                perform(state.machine.receivedViolation(error, now: now), in: &state)
            }
            return state.closing == nil
        }
    }

    /// No more comes in over a connection. What could not be taken would come again and again; a frame of which the
    /// connection's end has left a part only comes whole over the next one.
    func inputEnded(_ error: ConnectionError?, on id: UInt64) {
        guard let cause = error?.cause, cause is FramingError || cause is MessageError else { return }
        if let error = cause as? FramingError, error.code == .truncatedFrame { return }
        change { state, now in
            guard state.outlet?.id == id else { return }
            perform(state.machine.receivedViolation(.undecodable("\(cause)"), now: now), in: &state)
        }
    }

    /// All frames that came together have been received. Who waits for what they brought goes on.
    func batchEnded() {
        change(isOneOfMany: true) { _, _ in }
    }

    /// There may be room again.
    func madeRoom(on id: UInt64) {
        change { state, _ in
            if state.outlet?.id == id { state.outlet?.isBlocked = false }
        }
    }

    /// Offers what the machine has to send to the connection, as long as that has room.
    func pump(_ state: inout State, now: MonotonicTime) {
        // Goodbyes and the like are few, and line up where there is no room: nothing comes after most of them.
        while let outlet = state.outlet, !outlet.hasFailed, !outlet.isBlocked || state.machine.hasControlFrames {
            state.buffer.removeAll(keepingCapacity: true)
            var isDone = false
            while state.buffer.count < Self.writeSize, !outlet.isBlocked || state.machine.hasControlFrames {
                guard let (frame, actions) = state.machine.nextFrame(now: now) else {
                    isDone = true
                    break
                }
                frame.append(to: &state.buffer, state.details, now: now)
                perform(actions, in: &state)
            }
            if state.buffer.isEmpty {
                guard state.drainPause != nil, !state.hasUnsent else { break }
                sayDraining(&state)
                continue
            }
            do {
                if let pending = try state.buffer.withUnsafeBytes({ try outlet.connection.offer($0) }) {
                    if !outlet.isBlocked { state.effects.append(.waitForRoom(outlet, pending)) }
                    state.outlet?.isBlocked = true
                }
            } catch {
                state.outlet?.hasFailed = true
            }
            if isDone, state.drainPause == nil { break }
        }
        // A server has one for each session.
        if state.buffer.capacity > Self.keptBufferSize { state.buffer = [] }
        closeIfOver(&state)
        leaveIfDone(&state)
    }

    /// Tells the peer that this side goes away, if that is to be done.
    func sayDraining(_ state: inout State) {
        if let pause = state.drainPause.take() { state.machine.drain(pause: pause) }
    }

    /// Leaves a peer that goes away once nothing is under way there, and it knows that all it sent is processed; who owns the
    /// connections makes another one in its time.
    private func leaveIfDone(_ state: inout State) {
        guard state.isPeerLeaving, state.machine.sentRequestCount == 0, state.hasAllProcessed, state.owesNothing else {
            return
        }
        guard let outlet = state.outlet, !outlet.hasFailed, !outlet.isBlocked else { return }
        state.isPeerLeaving = false
        state.outlet?.hasFailed = true
        state.effects.append(.close(outlet.connection, nil))
    }

    /// Closes the connection of a session that has ended, once its goodbye is on the way.
    private func closeIfOver(_ state: inout State) {
        guard let outlet = state.outlet, let closing = state.closing else { return }
        let saysGoodbye = closing.saysGoodbye && !outlet.hasFailed
        state.outlet?.hasFailed = true
        state.closing = nil
        // In order a connection is closed with what has room only.
        if saysGoodbye, outlet.isBlocked || closing.error != nil {
            state.effects.append(.closeAfterGoodbye(outlet.connection, closing.error))
        } else {
            state.effects.append(.close(outlet.connection, closing.error))
        }
    }

    /// Writes a goodbye on a connection, or lines it up.
    ///
    /// - Returns: whether it lines up, as there is no room.
    @discardableResult
    static func say(_ goodbye: SessionGoodbye, on connection: any TransportConnection) -> Bool {
        var bytes: [UInt8] = []
        SessionFrame<SessionPayload>.goodbye(goodbye).append(
            to: &bytes,
            SessionOpeningDetails(),
            now: MonotonicTime(nanoseconds: 0)
        )
        // One that is gone needs no goodbye.
        return (try? bytes.withUnsafeBytes { try connection.offer($0) }) != nil
    }
}

extension SessionEngine.State {
    /// Whether the peer has processed all that was sent.
    fileprivate var hasAllProcessed: Bool {
        SessionLane.allCases.allSatisfy { machine.outbound.unprocessedSize($0).frameCount == 0 }
    }

    /// Whether all that came is processed, and the peer knows it.
    fileprivate var owesNothing: Bool {
        let progress = machine.inbound.progress
        return progress.processed.ordinary == progress.received && !machine.inbound.hasUnreported
    }

    /// Whether something waits to be sent: for room, or for the peer's window.
    fileprivate var hasUnsent: Bool {
        let sent = SessionLane.allCases.reduce(0) { $0 + machine.outbound.unprocessedSize($1).frameCount }
        return machine.outbound.keptSize.frameCount > sent
    }
}

extension ConnectionError {
    static var notWelcomed: ConnectionError {
        ConnectionError(code: .idleTimeout, message: "The server did not answer the hello of the session in time.")
    }

    static func brokenSessionRules(_ message: String) -> ConnectionError {
        ConnectionError(code: .protocolViolation, message: "The peer broke the rules of sessions: \(message)")
    }
}
