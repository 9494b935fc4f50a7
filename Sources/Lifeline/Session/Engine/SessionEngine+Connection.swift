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
            let older = state.machine.connectionID
            let actions = state.machine.connected(over: id, now: now)
            state.add(connection, as: id, after: older)
            run(actions, in: &state)
        }
    }

    /// A client has opened a connection to this server, which asks for this session.
    ///
    /// - Parameters:
    ///   - id: ascending: of two that claim the session, the one with the higher has it.
    ///   - attach: has the connection's frames come here. Called under the lock, so that none is received before the
    ///     opening. Returns those that came before; nil when the connection is over.
    /// - Returns: why it does not get the session; nil when it does.
    func opened(
        by hello: SessionHello,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        _ connection: any TransportConnection,
        as id: UInt64,
        attach: () -> [(Lifeline_Session_V1_Frame, byteCount: Int)]?
    ) -> SessionGoodbye? {
        change { state, now in
            guard let frames = attach() else { return nil }
            let older = state.machine.connectionID
            let (refusal, actions) = state.machine.opened(
                by: hello,
                credentials,
                isResumed: isResumed,
                over: id,
                now: now
            )
            if refusal == nil { state.add(connection, as: id, after: older) }
            run(actions, in: &state)
            for (frame, byteCount) in frames { receive(frame, byteCount: byteCount, on: id, in: &state, now: now) }
            return refusal
        }
    }

    /// A connection is gone.
    func disconnected(_ id: UInt64) {
        change { state, now in
            state.otherConnections[id] = nil
            if id == state.machine.connectionID { state.outlet = nil }
            run(state.machine.disconnected(id, now: now), in: &state)
        }
    }

    /// A frame came in. Call `batchEnded` after those that came together: their effects wait for that.
    ///
    /// - Returns: whether the connection goes on.
    @discardableResult
    func received(_ frame: Lifeline_Session_V1_Frame, byteCount: Int, on id: UInt64) -> Bool {
        let now = clock.now
        return state.withLockedValue { state in
            receive(frame, byteCount: byteCount, on: id, in: &state, now: now)
            return !state.machine.isDone(with: id)
        }
    }

    @inline(__always)  // Two callers, one of which is called for each frame.
    private func receive(
        _ frame: Lifeline_Session_V1_Frame,
        byteCount: Int,
        on id: UInt64,
        in state: inout State,
        now: MonotonicTime
    ) {
        do throws(SessionViolation) {
            let frame = try SessionFrame(frame, byteCount: byteCount, now: now)
            take(state.machine.lacking(for: frame), in: &state)
            run(state.machine.received(frame, over: id, now: now), in: &state)
        } catch {
            run(state.machine.receivedViolation(error, over: id, now: now), in: &state)
        }
    }

    /// No more comes in over a connection. What could not be taken would come again and again; a frame of which the
    /// connection's end has left a part only comes whole over the next one.
    func inputEnded(_ error: ConnectionError?, on id: UInt64) {
        guard let cause = error?.cause, cause is FramingError || cause is MessageError else { return }
        if let error = cause as? FramingError, error.code == .truncatedFrame { return }
        change { state, now in
            run(state.machine.receivedViolation(.undecodable("\(cause)"), over: id, now: now), in: &state)
        }
    }

    /// All frames that came together have been received: their effects run.
    func batchEnded() {
        change(isOneOfMany: true) { _, _ in }
    }

    /// There may be room again.
    func madeRoom(on id: UInt64) {
        change { state, _ in
            if id == state.machine.connectionID { state.outlet?.isBlocked = false }
        }
    }

    /// Offers what the machine has to send to the connection, as long as that has room.
    func pump(_ state: inout State, now: MonotonicTime) {
        var isDone = false
        while !isDone, let outlet = state.outlet {
            state.buffer.removeAll(keepingCapacity: true)
            while state.buffer.count < Self.writeSize {
                guard let (frame, actions) = state.machine.nextFrame(hasRoom: !outlet.isBlocked, now: now) else {
                    isDone = true
                    break
                }
                frame.append(to: &state.buffer, state.details, now: now)
                run(actions, in: &state)
            }
            if state.buffer.isEmpty { break }
            do {
                if let pending = try state.buffer.withUnsafeBytes({ try outlet.connection.offer($0) }) {
                    if !outlet.isBlocked {
                        let id = state.machine.connectionID
                        state.effects.append(.waitForRoom(outlet.connection, id: id, pending))
                    }
                    state.outlet?.isBlocked = true
                }
            } catch {
                run(state.machine.sendingFailed(), in: &state)
            }
        }
        // A server has one for each session.
        if state.buffer.capacity > Self.keptBufferSize { state.buffer = [] }
        let hasRoom = state.outlet?.isBlocked != true
        run(state.machine.offeredFrames(hasRoom: hasRoom, now: now), in: &state)
    }

    /// Writes a goodbye on a connection, whether or not it has room. One that is gone needs none.
    static func say(_ goodbye: SessionGoodbye, on connection: any TransportConnection) {
        var bytes: [UInt8] = []
        SessionFrame<SessionPayload>.goodbye(goodbye).append(
            to: &bytes,
            SessionOpeningDetails(),
            now: MonotonicTime(nanoseconds: 0)
        )
        _ = try? bytes.withUnsafeBytes { try connection.offer($0) }
    }
}

extension SessionEngine.State {
    /// Adds a connection, which becomes the present one unless the machine refused it.
    ///
    /// - Parameter older: the number of the one that was present before.
    fileprivate mutating func add(_ connection: any TransportConnection, as id: UInt64, after older: UInt64) {
        guard id == machine.connectionID else { return otherConnections[id] = connection }
        if let outlet { otherConnections[older] = outlet.connection }
        outlet = SessionEngine.Outlet(connection: connection)
    }

    /// A connection that is not closed yet.
    func connection(_ id: UInt64) -> (any TransportConnection)? {
        id == machine.connectionID ? outlet?.connection : otherConnections[id]
    }
}

extension TransportConnection {
    /// Does what a session's machine wants of its connection.
    func perform(_ closing: SessionClosing) {
        switch closing {
        case .inOrder: close()
        case .endSending: endSending()
        case .abortNotWelcomed: abort(.notWelcomed)
        case .abortViolated(let message): abort(.brokenSessionRules(message))
        // Told that the session is over, the owner does.
        case .byOwner: break
        }
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
