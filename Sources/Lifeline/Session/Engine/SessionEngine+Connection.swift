internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport

// Connections: what comes in over one, and what goes out.
extension SessionEngine {
    /// The size of one write, up to which frames are put together: 64 KiB, as much as most reads take.
    private static var writeSize: Int { 64 << 10 }

    /// Has the next opening carry other metadata.
    func renew(_ metadata: SessionMetadata) {
        state.withLock { $0.details.metadata = metadata }
    }

    /// A client has a connection.
    func connected(_ connection: any TransportConnection, as id: UInt64) {
        change { state, now in
            let older = state.machine.connectionID
            state.machine.connected(over: id, state.details, now: now, into: &state.actions)
            state.add(connection, as: id, after: older)
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
        by hello: ClientOpening,
        _ credentials: SessionCredentials,
        isResumed: Bool,
        _ connection: any TransportConnection,
        as id: UInt64,
        attach: () -> [[UInt8]]?
    ) -> SessionGoodbye? {
        change { state, now in
            guard let frames = attach() else { return nil }
            let older = state.machine.connectionID
            let refusal = state.machine.opened(
                by: hello,
                credentials,
                isResumed: isResumed,
                over: id,
                state.details,
                now: now,
                into: &state.actions
            )
            if refusal == nil { state.add(connection, as: id, after: older) }
            for frame in frames {
                frame.span.withUnsafeBytes { receive($0, over: id, &state, now: now) }
            }
            if !state.synchronousWork.isEmpty { state.effects.append(.doSynchronousWork(connection.executor)) }
            return refusal
        }
    }

    /// A connection is gone.
    func disconnected(_ id: UInt64) {
        change { state, now in
            state.otherConnections[id] = nil
            if id == state.machine.connectionID { state.outlet = nil }
            state.machine.disconnected(id, now: now, into: &state.actions)
        }
    }

    /// Frames came in. Call `batchEnded` after those that came together: their effects wait for that.
    ///
    /// - Parameters:
    ///   - frames: as they stand in the memory of the read.
    ///   - first: one that was taken from them before.
    /// - Returns: whether the connection goes on.
    func receive(
        _ frames: inout FrameRun.Iterator,
        behind first: UnsafeRawBufferPointer? = nil,
        over id: UInt64
    ) -> Bool {
        let now = clock.now
        return state.withLock { state in
            if let first { receive(first, over: id, &state, now: now) }
            while let frame = frames.next() { receive(frame, over: id, &state, now: now) }
            run(&state, now: now)
            return !state.machine.isDone(with: id)
        }
    }

    @inline(__always)
    private func receive(_ frame: UnsafeRawBufferPointer, over id: UInt64, _ state: inout State, now: MonotonicTime) {
        if budget != nil { take(state.machine.lacking(toReceive: frame), in: &state) }
        let arrival = state.machine.receive(frame, over: id, now: now, into: &state.actions)
        run(&state, now: now)
        if let arrival { take(arrival, &state, now: now) }
    }

    /// No more comes in over a connection. What could not be taken would come again and again; a frame of which the
    /// connection's end has left a part only comes whole over the next one.
    func inputEnded(_ error: ConnectionError?, on id: UInt64) {
        guard let cause = error?.cause as? FramingError, cause.code != .truncatedFrame else { return }
        change { state, now in
            state.machine.receivedViolation(.undecodable("\(cause)"), over: id, now: now, into: &state.actions)
        }
    }

    /// All frames that came together have been received: their effects run.
    func batchEnded() {
        let work = change(isOneOfMany: true) { state, _ in takeSynchronousWork(&state) }
        if !work.isEmpty { perform(work) }
    }

    /// There may be room again.
    func madeRoom(on id: UInt64) {
        change { state, _ in
            if id == state.machine.connectionID { state.outlet?.isBlocked = false }
        }
    }

    /// Offers what the machine has to send to the connection, as long as that has room.
    func pump(_ state: inout State, now: MonotonicTime) {
        var isMore = true
        while isMore, let outlet = state.outlet {
            do {
                let pending = try outlet.connection.offer { bytes in
                    while isMore, bytes.count < Self.writeSize {
                        isMore = state.machine.offer(
                            hasRoom: !outlet.isBlocked,
                            atMost: Self.writeSize - bytes.count,
                            now: now,
                            into: &state.actions
                        ) {
                            bytes.append($0)
                        }
                    }
                }
                if let pending {
                    if !outlet.isBlocked {
                        let id = state.machine.connectionID
                        state.effects.append(.waitForRoom(outlet.connection, id: id, pending))
                    }
                    state.outlet?.isBlocked = true
                }
                state.machine.written()
            } catch {
                state.machine.sendingFailed(into: &state.actions)
            }
        }
        let hasRoom = state.outlet?.isBlocked != true
        state.machine.offered(hasRoom: hasRoom, now: now, into: &state.actions)
        run(&state, now: now)
    }

    /// Writes a goodbye on a connection, whether or not it has room. One that is gone needs none.
    static func say(_ goodbye: SessionGoodbye, on connection: any TransportConnection) {
        var bytes: [UInt8] = []
        goodbye.write(to: &bytes)
        _ = try? bytes.span.withUnsafeBytes { try connection.offer($0) }
    }
}

extension SessionEngine.State {
    /// Adds a connection, which becomes the present one unless the machine refused it.
    ///
    /// - Parameter older: the number of the one that was present before.
    fileprivate mutating func add(_ connection: any TransportConnection, as id: UInt64, after older: UInt64) {
        guard id == machine.connectionID else { return otherConnections[id] = connection }
        if let outlet { otherConnections[older] = outlet.connection }
        outlet = SessionEngine.Outlet(connection: connection, executor: connection.executor)
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
