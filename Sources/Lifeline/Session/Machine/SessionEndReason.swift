package import LifelineCore

/// Why a session is over.
package enum SessionEndReason: Sendable {
    /// This side has closed it, and everything was done.
    case closed
    /// This side has ended it, whatever was left to do.
    case abandoned
    /// A server's: the client did not come back in time.
    case expired
    /// A server's: the server was full, and the client had made no use of the session.
    case madeWay
    /// A server's: the client has begun another session, and says by its store that it is the same one.
    case begunAgain
    /// What is in the store cannot be read.
    case storeDamaged(StoreError)
    /// A server's: it goes on at another server.
    case moved
    /// A server's: the server has shut down. The peer is not told.
    case shutDown
    /// A client's: no server would take its hello, for this reason.
    case misconfigured(ConnectionError)
    /// A server's: the client broke the rules.
    case violated(SessionViolation)
    /// The peer has said that the session is over.
    case saidByPeer(SessionGoodbye)

    /// Whether the session ended against the will of this side.
    package var isFailure: Bool {
        switch self {
        case .closed, .abandoned, .moved, .shutDown: false
        case .saidByPeer(let goodbye): goodbye.code != .closed
        case .expired, .madeWay, .begunAgain, .storeDamaged, .misconfigured, .violated: true
        }
    }

    var isShutDown: Bool { if case .shutDown = self { true } else { false } }

    /// Whether this side dropped what was left to do: handlers of pushes that came in are cancelled, too.
    package var dropsWork: Bool {
        switch self {
        case .abandoned, .expired, .madeWay, .begunAgain, .shutDown: true
        case .storeDamaged, .closed, .moved, .misconfigured, .violated, .saidByPeer: false
        }
    }

    /// What the peer is told; nil: nothing.
    func goodbye(from role: SessionRole) -> SessionGoodbye? {
        switch self {
        case .closed, .misconfigured, .storeDamaged: SessionGoodbye(.closed)
        case .begunAgain: SessionGoodbye(.closed, "The client has begun another session.")
        case .abandoned: SessionGoodbye(.closed, role == .server ? "The server has ended the session." : "")
        case .expired: SessionGoodbye(.closed, "The client was away for too long.")
        case .madeWay: SessionGoodbye(.closed, "The server was full.")
        case .violated(let violation): SessionGoodbye(.violation, violation.message)
        case .moved, .shutDown, .saidByPeer: nil
        }
    }
}

/// Why a client lost its session: the next connection begins a new one.
package enum SessionLoss: Sendable {
    /// The server does not know the session any more.
    case forgotten
    /// The server broke the rules.
    case violated(SessionViolation)
    /// The server says that this client broke the rules.
    case accused(SessionGoodbye)
}

/// What to do with a connection.
package enum SessionClosing: Sendable, Hashable {
    /// Close it in order.
    case inOrder
    /// End this side of it once everything that was offered is written, whether or not there was room for that. Closing
    /// it later does not take that back. The peer ends its own side; if it does not in time, another action says so.
    case endSending
    /// Cut it: the server has not welcomed this client in time.
    case abortNotWelcomed
    /// Cut it: the peer broke the rules, in the way that the text says.
    case abortViolated(String)
    /// A client's session has ended: the owner of its connections closes this one, and makes no other.
    case byOwner

    /// Whether what was offered before may be lost, though there was room for it.
    var isCut: Bool {
        switch self {
        case .abortNotWelcomed, .abortViolated: true
        case .inOrder, .endSending, .byOwner: false
        }
    }
}
