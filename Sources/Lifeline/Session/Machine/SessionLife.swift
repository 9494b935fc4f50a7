package import LifelineCore

/// The two ends of a session.
package enum SessionRole: Sendable {
    /// Opens connections; begins a new session when the old one is lost.
    case client
    /// Accepts connections; ends with its session.
    case server
}

/// The state of a session: whether it takes new work, the phase of its connection, and why it is over. No other type
/// stores any of this.
///
/// It is the part of the machine that does not deal with messages: the machine tells it what happens, and whether work
/// is left.
package struct SessionLife: Sendable {
    /// Whether the session takes new work.
    package enum Stage: Sendable {
        /// Can go to: moving, closing, ended.
        case active
        /// Receives nothing more, and goes to another server when none of its work runs here. Can go to: active,
        /// closing, ended.
        ///
        /// - Parameters:
        ///   - cancelling: the time at which handlers of requests are cancelled; nil once they are.
        ///   - deadline: the time from which on the session stays here after all.
        case moving(cancelling: MonotonicTime?, deadline: MonotonicTime)
        /// Takes no new work, and ends when everything is done, or at the deadline. Can go to: ended.
        case closing(deadline: MonotonicTime?)
        /// Can go to: no other stage.
        indirect case ended(SessionEndReason)
    }

    /// The present connection. A newer one replaces it in any state.
    package enum ConnectionPhase: Sendable {
        /// There is no connection. Can go to: opening (client), open (server).
        case none
        /// A client has sent its hello. Can go to: open, closing, closed, none.
        case opening(deadline: MonotonicTime)
        /// Messages go both ways. Can go to: leaving, left, closing, none.
        case open
        /// The peer goes away, so no new work begins there. Can go to: left, closing, none.
        case leaving
        /// Nothing more is sent: a client has left a server that goes away, or the connection has refused a frame.
        /// Received frames still count. Can go to: closing, none.
        case left
        /// Received frames no longer count. The connection is closed once the remaining control frames were offered.
        /// Can go to: closed, none.
        indirect case closing(SessionClosing, saysGoodbye: Bool)
        /// The driver was told to close it, or it has failed, and will report its end. Can go to: none.
        case closed
    }

    /// Whether, and when, the peer is told that this side goes away.
    package enum Drain: Sendable {
        /// Not now. Can go to: waiting.
        case none
        /// The peer is told later. Can go to: said; none, with the session.
        case waiting(SessionDrain)
        /// The peer was told. Can go to: waiting, when the connection ends, so that the peer is told on the next one,
        /// too; none, with the session.
        case said(SessionDrain)
    }

    /// A connection that no longer carries a session. Its peer was told so, and has until the deadline to end its side.
    private struct Parting {
        let deadline: MonotonicTime
        /// How to close the connection otherwise.
        let closing: SessionClosing
    }

    package private(set) var stage = Stage.active
    package internal(set) var connection = ConnectionPhase.none
    /// The number of the present connection, or of the last one. On a server the numbers are claims: of two connections
    /// that want the session, the one with the higher number gets it.
    package private(set) var connectionID: UInt64 = 0
    package private(set) var drain = Drain.none
    /// The connections by their numbers, which ascend, as do their deadlines.
    private var parting = SparseQueue<Parting>()

    /// The reason for the end of the session; nil while it goes on.
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

    /// Whether frames received over a connection count.
    @inline(__always)
    func hears(_ id: UInt64) -> Bool {
        guard id == connectionID else { return false }
        return switch connection {
        case .opening, .open, .leaving, .left: true
        case .none, .closing, .closed: false
        }
    }

    /// Whether a connection is the present one, and this side is about to close it.
    func isGivenUp(_ id: UInt64) -> Bool {
        guard id == connectionID else { return false }
        return switch connection {
        case .closing, .closed: true
        case .none, .opening, .open, .leaving, .left: false
        }
    }

    /// Whether frames received over a connection no longer count, except for the end of the session. A connection with
    /// a higher number than the present one is not reported yet, or was refused.
    func isDone(with id: UInt64) -> Bool { id <= connectionID && !hears(id) }

    /// Whether the session is active, over a connection that neither side is leaving.
    @inline(__always)
    var isSteady: Bool {
        guard case .open = connection, case .active = stage, case .none = drain else { return false }
        return true
    }

    /// The time at which to call `timerFired`.
    @inline(__always)
    package var nextDeadline: MonotonicTime? {
        var deadline = parting.isEmpty ? nil : parting.readFirst { $0.deadline }
        if case .opening(let opening) = connection { deadline = .earliest(deadline, opening) }
        switch stage {
        case .closing(let closing): deadline = .earliest(deadline, closing)
        case .moving(let cancelling, let moving): deadline = .earliest(deadline, .earliest(cancelling, moving))
        case .active, .ended: break
        }
        if case .waiting(let drain) = drain, canSend {
            deadline = .earliest(deadline, .earliest(drain.start, drain.deadline))
        }
        return deadline
    }

    // MARK: The session

    /// Stops taking new work. Of two deadlines the earlier one counts.
    mutating func close(by deadline: MonotonicTime?) {
        switch stage {
        case .active, .moving: stage = .closing(deadline: deadline)
        case .closing(let earlier): stage = .closing(deadline: .earliest(earlier, deadline))
        case .ended: break
        }
    }

    /// Starts moving the session to another server. Of two deadlines the earlier one counts. Returns false when it is
    /// closing or over.
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

    /// Returns whether to cancel handlers of requests now.
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

    /// Makes this side tell the peer that it goes away, once on every connection from now on. Of two calls the earlier
    /// times count.
    mutating func drain(_ new: SessionDrain) {
        if isOver { return }
        switch drain {
        case .none: drain = .waiting(new)
        case .waiting(let old): drain = .waiting(old.hastened(by: new))
        case .said(let old): drain = .said(old.hastened(by: new))
        }
    }

    /// Notes that the time has come to tell the peer as soon as nothing waits to be sent.
    mutating func drainTimerFired(now: MonotonicTime) {
        guard case .waiting(var waiting) = drain, let start = waiting.start, start <= now else { return }
        waiting.start = nil
        drain = .waiting(waiting)
    }

    /// Returns the goodbye of a server that goes away, once for each connection.
    ///
    /// - Parameter isIdle: whether nothing waits to be sent.
    mutating func takeDrain(isIdle: Bool, now: MonotonicTime) -> SessionGoodbye? {
        guard case .waiting(let waiting) = drain, canSend else { return nil }
        guard waiting.deadline <= now || (isIdle && waiting.start.map { $0 <= now } ?? true) else { return nil }
        drain = .said(waiting)
        return SessionGoodbye(.draining, pause: waiting.pause)
    }

    // MARK: Connections

    /// Gives the session to a connection. Returns false when a newer one has already claimed it.
    mutating func claim(_ id: UInt64) -> Bool {
        guard id > connectionID else { return false }
        connectionID = id
        return true
    }

    /// Notes that the present connection has ended, or is replaced.
    mutating func lost() {
        connection = .none
        if case .said(let said) = drain { drain = .waiting(said) }
    }

    /// Notes the end of a connection. Returns whether it was the present one.
    mutating func disconnected(_ id: UInt64) -> Bool {
        parting.remove(id)
        if case .none = connection { return false }
        return id == connectionID
    }

    /// Replaces the present connection by another one; the peer of the old one is told. Returns what to do with the old
    /// one.
    mutating func replace(_ id: UInt64, goodbyeDeadline: MonotonicTime) -> SessionClosing? {
        switch connection {
        case .none, .closed: return nil
        case .left: return .inOrder
        case .opening, .open, .leaving, .closing: return part(id, .inOrder, deadline: goodbyeDeadline)
        }
    }

    /// Notes that the peer goes away.
    mutating func peerLeaves() {
        if case .open = connection { connection = .leaving }
    }

    /// Notes that the present connection has refused a frame.
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

    /// Notes that everything to send was offered. Returns what to do with the present connection.
    ///
    /// - Parameters:
    ///   - hasRoom: whether the connection has taken all of it. Frames that wait for room are written only if this side
    ///     ends in order. A connection that is cut at once may lose its goodbye.
    ///   - isIdle: whether no work is under way on it.
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

    /// Returns a connection whose peer has not ended its side in time, and what to do with it.
    mutating func takeOverdue(now: MonotonicTime) -> (UInt64, SessionClosing)? {
        guard let (id, first) = parting.first, first.deadline <= now else { return nil }
        parting.remove(id)
        return (id, first.closing)
    }
}
