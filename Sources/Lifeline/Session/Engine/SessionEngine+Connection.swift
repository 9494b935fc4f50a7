internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport

// Connections: received events, and frames to send.
extension SessionEngine {
    /// The size of one write, up to which frames are combined: 64 KiB, as much as most reads take.
    private static var writeSize: Int { 64 << 10 }

    /// Sets the metadata for the next opening.
    func renew(_ metadata: SessionMetadata) {
        state.withLock { $0.details.metadata = metadata }
    }

    /// Notes that a client has a connection.
    func connected(_ connection: any TransportConnection, as id: UInt64) {
        change { state, now in
            let older = state.machine.connectionID
            state.machine.connected(over: id, state.details, now: now, into: &state.actions)
            state.add(connection, as: id, after: older)
        }
    }

    /// Notes that a client has opened a connection to this server and asks for this session.
    ///
    /// - Parameters:
    ///   - id: an ascending number. If two connections claim the session, it goes to the one with the higher number.
    ///   - attach: passes the connection's frames to this engine from now on. It is called under the lock, so that the
    ///     engine receives none before the opening. It returns the frames that arrived before; nil if the connection is
    ///     over.
    /// - Returns: the reason why the connection does not get the session; nil if it does, or is over.
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

    /// Notes that a connection is closed.
    func disconnected(_ id: UInt64) {
        change { state, now in
            state.otherConnections[id] = nil
            if id == state.machine.connectionID { state.outlet = nil }
            state.machine.disconnected(id, now: now, into: &state.actions)
        }
    }

    /// Receives frames. Call `batchEnded` after all frames of one read: their effects wait for it.
    ///
    /// - Parameters:
    ///   - frames: borrowed from the memory of the read.
    ///   - first: a frame before them, which was already taken from the iterator.
    /// - Returns: whether the connection stays open.
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

    /// Notes that a connection receives nothing more. A frame that cannot be decoded is a violation, because the peer
    /// would send it again and again. A frame that the end has truncated is not: it arrives whole over the next
    /// connection.
    func inputEnded(_ error: ConnectionError?, on id: UInt64) {
        guard let cause = error?.cause as? FramingError, cause.code != .truncatedFrame else { return }
        change { state, now in
            state.machine.receivedViolation(.undecodable("\(cause)"), over: id, now: now, into: &state.actions)
        }
    }

    /// Runs the effects of the frames of one read, after the last of them.
    func batchEnded() {
        let work = change(isOneOfMany: true) { state, _ in takeSynchronousWork(&state) }
        if !work.isEmpty { perform(work) }
    }

    /// Notes that the connection may have room again.
    func madeRoom(on id: UInt64) {
        change { state, _ in
            if id == state.machine.connectionID { state.outlet?.isBlocked = false }
        }
    }

    /// Offers frames of the machine to the connection while it has room.
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

    /// Writes a goodbye on a connection, whether or not it has room. Does nothing if the connection is gone.
    static func say(_ goodbye: SessionGoodbye, on connection: any TransportConnection) {
        var bytes: [UInt8] = []
        goodbye.write(to: &bytes)
        _ = try? bytes.span.withUnsafeBytes { try connection.offer($0) }
    }
}

extension SessionEngine.State {
    /// Adds a connection. It becomes the present one unless the machine refused it.
    ///
    /// - Parameter older: the number of the connection that was present before.
    fileprivate mutating func add(_ connection: any TransportConnection, as id: UInt64, after older: UInt64) {
        guard id == machine.connectionID else { return otherConnections[id] = connection }
        if let outlet { otherConnections[older] = outlet.connection }
        outlet = SessionEngine.Outlet(connection: connection, executor: connection.executor)
    }

    /// Returns the connection of this number; nil if it is closed.
    func connection(_ id: UInt64) -> (any TransportConnection)? {
        id == machine.connectionID ? outlet?.connection : otherConnections[id]
    }
}

extension TransportConnection {
    /// Closes the connection in the way that a session's machine has decided.
    func perform(_ closing: SessionClosing) {
        switch closing {
        case .inOrder: close()
        case .endSending: endSending()
        case .abortNotWelcomed: abort(.notWelcomed)
        case .abortViolated(let message): abort(.brokenSessionRules(message))
        // The owner closes it when it learns that the session is over.
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
