package import Lifeline
package import LifelineCore

/// The sessions of a simulated server: the registry of the real one, and who is let in, which takes time.
package final class SimulatedSessionServer {
    package typealias Link = SimulatedSessionLink

    /// The settings of a simulated server.
    package struct Configuration {
        package var options = SessionOptions()
        package var registry = SessionRegistryConfiguration()
        /// The budget that all sessions share; nil: none.
        package var budget: SimulatedSessionBudget?
        /// Where durable messages are kept; nil: nowhere. `registry.hasStore` says the same.
        package var store: SimulatedSessionStore?

        package init() {}
    }

    /// A connection from its beginning on.
    private final class Connection {
        typealias Admission = SessionAdmission<Link.Frame, (end: SimulatedSessionEnd, id: SessionID)>

        let link: Link
        /// When it is to have a session; nil: it has one, or has been told why not.
        var deadline: MonotonicTime?
        var admission = Admission()
        /// The server decides whether to let the client in, until then.
        var decision: (hello: ClientOpening, due: MonotonicTime)?
        /// Whether its client's side has ended, which the session has not been told yet.
        var inputHasEnded = false

        init(_ link: Link, deadline: MonotonicTime) {
            self.link = link
            self.deadline = deadline
        }
    }

    package let configuration: Configuration
    /// The sessions that there are, which have not ended.
    package private(set) var sessions: [(id: SessionID, end: SimulatedSessionEnd)] = []
    private var registry: SessionRegistry<SimulatedSessionBox>
    private var connections: [Connection] = []
    package private(set) var sessionCount: UInt64
    /// Sessions that have ended, and whose work is not all stored.
    private var ending: [(id: SessionID, end: SimulatedSessionEnd)] = []
    /// How long it takes to decide whether to let a client in.
    package var decisionTime: () -> Duration = { .zero }
    /// A session has begun; nothing was done with it yet.
    package var onSession: (SimulatedSessionEnd) -> Void = { _ in }
    /// A client's session goes on, or did not because a newer hello has come.
    package var onResume: () -> Void = {}
    package var onOvertaken: () -> Void = {}
    /// A session that nobody came back to is given up.
    package var onExpiry: (SimulatedSessionEnd) -> Void = { _ in }

    /// - Parameter sessionCount: how many sessions there were before this process.
    package init(_ configuration: Configuration, sessionCount: UInt64 = 0) {
        self.configuration = configuration
        self.sessionCount = sessionCount
        registry = SessionRegistry(configuration.registry, seed: 1)
    }

    /// How many sessions the registry has.
    package var registeredCount: Int { registry.count }
    /// When something is to be done.
    package var nextDeadline: MonotonicTime? {
        var deadline = registry.nextDeadline
        for connection in connections {
            if let session = connection.admission.session {
                // That of a session which is over, too.
                deadline = .earliest(deadline, session.end.machine.nextDeadline)
            } else {
                deadline = .earliest(deadline, .earliest(connection.deadline, connection.decision?.due))
            }
        }
        return deadline
    }
    /// Whether it has a connection, attached or not.
    package func knows(_ link: Link) -> Bool { connections.contains { $0.link === link } }
    /// Whether it has a connection, and has not seen the end of its client's side.
    package func reads(_ link: Link) -> Bool { connections.contains { $0.link === link && !$0.inputHasEnded } }

    /// A client has connected.
    package func accept(_ link: Link, now: MonotonicTime) {
        connections.append(Connection(link, deadline: registry.helloDeadline(now: now)))
    }

    /// Takes bytes from a connection, at most so many.
    package func receive(over link: Link, atMost byteCount: Int = .max, now: MonotonicTime) {
        let frames = link.deliver(to: .server, atMost: byteCount)
        guard let connection = connections.first(where: { $0.link === link }) else { return }
        if let session = connection.admission.session {
            session.end.received(frames, over: link, now: now)
        } else {
            for frame in frames { receive(frame, over: connection, now: now) }
        }
        guard link.isAtEnd(at: .server) else { return }
        switch connection.admission.inputEnded() {
        case .nothing: connection.inputHasEnded = true
        case .drop, .decide, .refuse, .leave, .handOver: disconnected(link, now: now)
        }
    }

    /// Takes a frame of a connection that had no session when it came.
    private func receive(_ frame: Link.Frame, over connection: Connection, now: MonotonicTime) {
        let (kind, hello) = Self.kind(of: frame)
        switch connection.admission.received(frame, kind) {
        case .nothing, .drop: break
        case .decide:
            guard let hello else { return }
            connection.decision = (hello, now + decisionTime())
            // At once, where it takes no time.
            advanced(to: now)
        case .refuse:
            if let goodbye = registry.goodbye(for: .violation("It is no hello.")) {
                say(goodbye, over: connection, now: now)
            }
        case .leave: disconnected(connection.link, now: now)
        case .handOver(let session): session.end.received([frame], over: connection.link, now: now)
        }
    }

    private static func kind(of frame: Link.Frame) -> (Connection.Admission.Kind, ClientOpening?) {
        guard case .success(let bytes) = frame else { return (.other, nil) }
        return bytes.withUnsafeBytes { bytes in
            guard let inner = try? InboundFrame(parsing: bytes) else { return (.other, nil) }
            switch inner.kind {
            case .hello?:
                guard let hello = try? ClientOpening(parsing: inner.body) else { return (.other, nil) }
                return (.hello(isResume: hello.credentials != nil), hello)
            case .goodbye?: return (.goodbye, nil)
            case .ping?, .pong?: return (.heartbeat, nil)
            default: return (.other, nil)
            }
        }
    }

    /// A connection is gone.
    package func disconnected(_ link: Link, now: MonotonicTime) {
        guard let index = connections.firstIndex(where: { $0.link === link }) else { return }
        let connection = connections.remove(at: index)
        link.end(from: .server)
        if let hello = connection.decision?.hello { registry.storeNotOpened(over: link.id, hello) }
        guard let session = connection.admission.session else { return }
        session.end.disconnected(link, now: now)
        registry.disconnected(link.id, of: session.id, now: now)
    }

    /// Does what is due.
    package func advanced(to now: MonotonicTime) {
        for connection in connections {
            if let session = connection.admission.session {
                if let deadline = session.end.machine.nextDeadline, deadline <= now { session.end.timerFired(now: now) }
            } else if let decision = connection.decision, decision.due <= min(now, connection.deadline ?? now) {
                connection.decision = nil
                attach(connection, decision.hello, now: now)
            } else if let deadline = connection.deadline, deadline <= now {
                disconnected(connection.link, now: now)
            }
        }
        for (id, end) in ending where end.machine.isStored { nothingIsLeft(of: id, end) }
        for (_, box) in registry.timerFired(now: now) {
            onExpiry(box.end)
            box.end.end(.expired, now: now)
        }
    }

    /// Goes away, and ends at a time: every client is to come back later.
    package func drain(until end: MonotonicTime, now: MonotonicTime) {
        for (box, drain) in registry.drain(until: end, movesSessions: false, now: now) {
            box.end.drain(drain, now: now)
        }
    }

    /// Another process takes its place, which knows nothing of the sessions. What was written may still come.
    ///
    /// - Parameter endsSessionsFirst: whether the sessions end while they have their connections.
    package func restart(endsSessionsFirst: Bool, now: MonotonicTime) {
        if endsSessionsFirst { shutDownSessions(now: now) }
        for connection in connections { disconnected(connection.link, now: now) }
        registry = SessionRegistry(configuration.registry, seed: 1)
        shutDownSessions(now: now)
    }

    private func shutDownSessions(now: MonotonicTime) {
        for (_, end) in sessions { end.end(.shutDown, now: now) }
    }

    private func attach(_ connection: Connection, _ hello: ClientOpening, now: MonotonicTime) {
        var fresh: SessionCredentials {
            sessionCount += 1
            return SessionCredentials(id: SessionID(sessionCount, 1), token: SessionToken(sessionCount, 2))
        }
        func ask(storeIsOpen: Bool) -> SessionRegistry<SimulatedSessionBox>.HelloAction {
            registry.receivedHello(
                hello,
                name: "client",
                over: connection.link.id,
                storeIsOpen: storeIsOpen,
                now: now,
                fresh: fresh
            ) { _ in SimulatedSessionBox(SimulatedSessionEnd(.server, options: configuration.options)) }
        }
        var action = ask(storeIsOpen: false)
        if case .openStore = action { action = ask(storeIsOpen: true) }
        switch action {
        case .openStore: preconditionFailure("The registry wants a store opened twice.")
        case .seek, .adopt: preconditionFailure("A simulated server has no others.")
        case .endFirst(let box):
            box.end.end(.begunAgain, now: now)
            // It is asked again when everything that was processed is stored.
            connection.decision = (hello, now + .milliseconds(1))
        case .refuse(let goodbye):
            if goodbye.code == .replaced { onOvertaken() }
            say(goodbye, over: connection, now: now)
        case .create(let credentials, let box):
            let (id, end) = (credentials.id, box.end)
            sessions.append((id, end))
            end.budget = configuration.budget
            if let store = configuration.store, let peer = hello.store?.id { end.use(store, for: peer) }
            end.details = SessionMachine.OpeningDetails(kept: configuration.registry.keptDuration)
            onSession(end)
            let observe = end.onActions
            end.onActions = { [weak self] actions in
                observe(actions)
                for case .ended in actions { self?.sessionEnded(id) }
            }
            open(end, credentials, hello, isResumed: false, connection, now: now)
        case .resume(let credentials, let box):
            onResume()
            open(box.end, credentials, hello, isResumed: true, connection, now: now)
        }
    }

    private func open(
        _ end: SimulatedSessionEnd,
        _ credentials: SessionCredentials,
        _ hello: ClientOpening,
        isResumed: Bool,
        _ connection: Connection,
        now: MonotonicTime
    ) {
        guard let earlier = connection.admission.attach(to: (end, credentials.id)) else { return }
        connection.deadline = nil
        // Connections are numbered in the order in which they are opened, and so claim it.
        let refusal = end.opened(by: hello, credentials, isResumed: isResumed, over: connection.link, now: now)
        if !earlier.isEmpty { end.received(earlier, over: connection.link, now: now) }
        if let refusal { say(refusal, over: connection, now: now) }
        if connection.inputHasEnded { disconnected(connection.link, now: now) }
    }

    /// The last thing on a connection, if that has room.
    private func say(_ goodbye: SessionGoodbye, over connection: Connection, now: MonotonicTime) {
        connection.admission.end()
        (connection.deadline, connection.decision) = (nil, nil)
        guard connection.link.hasRoom(from: .server) else { return connection.link.end(from: .server) }
        var bytes: [UInt8] = []
        goodbye.write(to: &bytes)
        connection.link.write(bytes, from: .server)
        connection.link.end(from: .server)
    }

    private func sessionEnded(_ id: SessionID) {
        registry.ended(id)
        guard let index = sessions.firstIndex(where: { $0.id == id }) else { return }
        let end = sessions.remove(at: index).end
        ending.append((id, end))
    }

    private func nothingIsLeft(of id: SessionID, _ end: SimulatedSessionEnd) {
        registry.nothingIsLeft(of: id, end.store?.peer)
        ending.removeAll { $0.id == id }
    }
}

/// A session as the registry keeps it. It belongs to the simulation's thread, as the registry does, which asks for
/// `Sendable`.
private struct SimulatedSessionBox: @unchecked Sendable {
    let end: SimulatedSessionEnd

    init(_ end: SimulatedSessionEnd) { self.end = end }
}
