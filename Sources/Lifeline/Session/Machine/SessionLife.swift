package import LifelineCore

/// Which end of a session it is.
package enum SessionRole: Sendable {
    /// Opens connections; goes on with a new session where the old one is lost.
    case client
    /// Is opened; ends with its session.
    case server
}

/// How a session stands: whether it takes new work, what becomes of its connections, and why it is over. Nothing of
/// this is stored anywhere else.
///
/// It is the part of the machine that knows no messages: the machine says what happens, and whether something is
/// left to do.
package struct SessionLife: Sendable {
    /// Whether there is work.
    package enum Stage: Sendable {
        /// Can go to: moving, closing, ended.
        case active
        /// Nothing comes in any more; goes to another server when nothing of it runs here. Can go to: active, closing,
        /// ended.
        ///
        /// - Parameters:
        ///   - cancelling: when handlers of requests are cancelled; nil: they are.
        ///   - deadline: when the session stays here after all.
        case moving(cancelling: MonotonicTime?, deadline: MonotonicTime)
        /// Takes no new work; ends when everything is done, or at the deadline. Can go to: ended.
        case closing(deadline: MonotonicTime?)
        /// Can go to: nothing.
        indirect case ended(SessionEndReason)
    }

    /// The present connection. A newer one takes its place in any state.
    package enum ConnectionPhase: Sendable {
        /// There is none. Can go to: opening (client), open (server).
        case none
        /// A client has said hello. Can go to: open, closing, closed, none.
        case opening(deadline: MonotonicTime)
        /// Messages go to and fro. Can go to: leaving, left, closing, none.
        case open
        /// The peer goes away, and nothing is begun there. Can go to: left, closing, none.
        case leaving
        /// Nothing more is sent: a client has left a server that goes away, or the connection has refused a frame. What
        /// comes in counts nevertheless. Can go to: closing, none.
        case left
        /// What comes in counts for nothing. The connection is closed when what is left to say was offered. Can go to:
        /// closed, none.
        indirect case closing(SessionClosing, saysGoodbye: Bool)
        /// The driver was told to close it, or it has failed; it is about to be gone. Can go to: none.
        case closed
    }

    /// Whether the peer is told that this side goes away.
    package enum Drain: Sendable {
        /// Not now. Can go to: waiting.
        case none
        /// The peer is told when nothing waits to be sent, or at the deadline. Can go to: said; none, with the session.
        case waiting(pause: Duration, deadline: MonotonicTime)
        /// Can go to: waiting, with the connection on which it was said, so that the next one hears of it, too; none,
        /// with the session.
        case said(pause: Duration, deadline: MonotonicTime)
    }

    /// A connection that carries no session any more: its peer was told so, and has until then to end its side.
    private struct Parting {
        let deadline: MonotonicTime
        /// What follows if it does not.
        let closing: SessionClosing
    }

    package private(set) var stage = Stage.active
    package internal(set) var connection = ConnectionPhase.none
    /// The number of the present connection; where there is none, of the last one. A server's are claims: of two
    /// connections that want the session, the one with the higher number has it.
    package private(set) var connectionID: UInt64 = 0
    package private(set) var drain = Drain.none
    /// By their numbers, which ascend, as do their deadlines.
    private var parting = SparseQueue<Parting>()

    /// Why the session is over; nil while it is not.
    var endReason: SessionEndReason? { if case .ended(let end) = stage { end } else { nil } }

    var isOver: Bool { if case .ended = stage { true } else { false } }

    var isMoving: Bool { if case .moving = stage { true } else { false } }

    var isClosing: Bool { if case .closing = stage { true } else { false } }

    /// Whether a client waits for the welcome.
    var isOpening: Bool { if case .opening = connection { true } else { false } }

    /// Whether the peer goes away.
    var isLeaving: Bool { if case .leaving = connection { true } else { false } }

    /// Whether messages can be sent.
    @inline(__always)
    package var canSend: Bool {
        switch connection {
        case .open, .leaving: true
        case .none, .opening, .left, .closing, .closed: false
        }
    }

    /// Whether what comes in over a connection counts.
    @inline(__always)
    func hears(_ id: UInt64) -> Bool {
        guard id == connectionID else { return false }
        return switch connection {
        case .opening, .open, .leaving, .left: true
        case .none, .closing, .closed: false
        }
    }

    /// Whether a connection is the present one, and is about to be closed by this side.
    func isGivenUp(_ id: UInt64) -> Bool {
        guard id == connectionID else { return false }
        return switch connection {
        case .closing, .closed: true
        case .none, .opening, .open, .leaving, .left: false
        }
    }

    /// Whether nothing counts any more that comes in over a connection, but for the end of the session. A connection
    /// with a higher number than the present one's is not reported yet, or was refused.
    func isDone(with id: UInt64) -> Bool { id <= connectionID && !hears(id) }

    /// Whether the session is active, over a connection that neither side leaves.
    @inline(__always)
    var isSteady: Bool {
        guard case .open = connection, case .active = stage, case .none = drain else { return false }
        return true
    }

    /// When `timerFired` is to be called.
    @inline(__always)
    package var nextDeadline: MonotonicTime? {
        var deadline = parting.isEmpty ? nil : parting.readFirst { $0.deadline }
        if case .opening(let opening) = connection { deadline = .earliest(deadline, opening) }
        switch stage {
        case .closing(let closing): deadline = .earliest(deadline, closing)
        case .moving(let cancelling, let moving): deadline = .earliest(deadline, .earliest(cancelling, moving))
        case .active, .ended: break
        }
        if case .waiting(_, let drain) = drain, canSend { deadline = .earliest(deadline, drain) }
        return deadline
    }

    // MARK: The session

    /// Takes no new work. Of two deadlines the earlier one counts.
    mutating func close(by deadline: MonotonicTime?) {
        switch stage {
        case .active, .moving: stage = .closing(deadline: deadline)
        case .closing(let earlier): stage = .closing(deadline: .earliest(earlier, deadline))
        case .ended: break
        }
    }

    /// Has the session go to another server. Of two deadlines the earlier one counts. Returns false where it is closing
    /// or over.
    mutating func move(cancelling: MonotonicTime, by deadline: MonotonicTime) -> Bool {
        switch stage {
        case .active:
            stage = .moving(cancelling: cancelling, deadline: deadline)
        case .moving(let earlier, let earlierDeadline):
            stage = .moving(
                cancelling: earlier.map { min($0, cancelling) },
                deadline: min(earlierDeadline, deadline)
            )
        case .closing, .ended:
            return false
        }
        return true
    }

    /// Returns whether handlers of requests are to be cancelled now.
    mutating func moveTimerFired(now: MonotonicTime) -> Bool {
        guard case .moving(let cancelling, let deadline) = stage else { return false }
        guard now < deadline else {
            stage = .active
            return false
        }
        guard let cancelling, cancelling <= now else { return false }
        stage = .moving(cancelling: nil, deadline: deadline)
        return true
    }

    /// Whether the session takes too long to close.
    func isOverdue(now: MonotonicTime) -> Bool {
        if case .closing(let deadline?) = stage { deadline <= now } else { false }
    }

    mutating func ended(_ end: SessionEndReason) {
        stage = .ended(end)
        drain = .none
    }

    /// Tells the peer that this side goes away, on every connection that the session has from now on, once on each. Of
    /// two deadlines the earlier one counts.
    mutating func drain(pause: Duration, by deadline: MonotonicTime) {
        if isOver { return }
        switch drain {
        case .none: drain = .waiting(pause: pause, deadline: deadline)
        case .waiting(_, let earlier): drain = .waiting(pause: pause, deadline: min(earlier, deadline))
        case .said(_, let earlier): drain = .said(pause: pause, deadline: min(earlier, deadline))
        }
    }

    /// The goodbye of a server that goes away, once on each connection.
    ///
    /// - Parameter isIdle: whether nothing waits to be sent.
    mutating func takeDrain(isIdle: Bool, now: MonotonicTime) -> SessionGoodbye? {
        guard case .waiting(let pause, let deadline) = drain, canSend, isIdle || deadline <= now else { return nil }
        drain = .said(pause: pause, deadline: deadline)
        return SessionGoodbye(.draining, pause: pause)
    }

    // MARK: Connections

    /// Gives the session to a connection. Returns false when a newer one has claimed it before.
    mutating func claim(_ id: UInt64) -> Bool {
        guard id > connectionID else { return false }
        connectionID = id
        return true
    }

    /// The present connection is gone, or another one takes its place.
    mutating func lost() {
        connection = .none
        if case .said(let pause, let deadline) = drain { drain = .waiting(pause: pause, deadline: deadline) }
    }

    /// A connection is gone. Returns whether it was the present one.
    mutating func disconnected(_ id: UInt64) -> Bool {
        parting.remove(id)
        if case .none = connection { return false }
        return id == connectionID
    }

    /// Another connection has taken the place of the present one, whose peer is told. Returns what to do with the
    /// latter.
    mutating func replace(_ id: UInt64, goodbyeDeadline: MonotonicTime) -> SessionClosing? {
        switch connection {
        case .none, .closed: return nil
        case .left: return .inOrder
        case .opening, .open, .leaving, .closing: return part(id, .inOrder, deadline: goodbyeDeadline)
        }
    }

    /// The peer goes away.
    mutating func peerLeaves() {
        if case .open = connection { connection = .leaving }
    }

    /// The present connection has refused a frame.
    mutating func sendingFailed() -> SessionClosing? {
        switch connection {
        case .none, .left, .closed: return nil
        case .opening:
            connection = .closed
            return nil
        case .open, .leaving:
            connection = .left
            return nil
        case .closing(let closing, _):
            connection = .closed
            return closing
        }
    }

    /// Everything that there was to send was offered. Returns what to do with the present connection.
    ///
    /// - Parameters:
    ///   - hasRoom: whether the connection has taken all of it. What waits for room is written only if its side is
    ///     ended; and a connection that is cut at once may take its goodbye with it.
    ///   - isIdle: whether nothing is under way on it.
    mutating func offered(
        hasRoom: Bool,
        isIdle: Bool,
        role: SessionRole,
        goodbyeDeadline: MonotonicTime
    ) -> SessionClosing? {
        switch connection {
        case .closing(let closing, let saysGoodbye):
            connection = .closed
            return saysGoodbye && (!hasRoom || closing.isCut)
                ? part(connectionID, closing, deadline: goodbyeDeadline) : closing
        case .leaving where role == .client && hasRoom && isIdle:
            connection = .left
            return .inOrder
        case .none, .opening, .open, .leaving, .left, .closed:
            return nil
        }
    }

    private mutating func part(_ id: UInt64, _ closing: SessionClosing, deadline: MonotonicTime) -> SessionClosing {
        parting.append(id, Parting(deadline: deadline, closing: closing))
        return .endSending
    }

    /// A connection whose peer has not ended its side in time, and what to do with it.
    mutating func takeOverdue(now: MonotonicTime) -> (UInt64, SessionClosing)? {
        guard let (id, first) = parting.first, first.deadline <= now else { return nil }
        parting.remove(id)
        return (id, first.closing)
    }
}
