package import LifelineCore

/// The reason for the end of a session.
package enum SessionEndReason: Sendable {
    /// This side has closed the session after all work was done.
    case closed
    /// This side has ended the session with work left.
    case abandoned
    /// On a server: the client did not come back in time.
    case expired
    /// On a server: the server was full, and the client had made no use of the session.
    case madeWay
    /// On a server: the client has begun another session. Its store shows that it is the same client.
    case begunAgain
    /// The content of the store cannot be read.
    case storeDamaged(StoreError)
    /// On a server: the session goes on at another server.
    case moved
    /// On a server: the server has shut down. The peer is not told.
    case shutDown
    /// On a client: no server would accept its hello, for this reason.
    case misconfigured(ConnectionError)
    /// On a server: the client broke the rules.
    case violated(SessionViolation)
    /// The peer has ended the session.
    case saidByPeer(SessionGoodbye)

    /// Whether the session ended without a request of this side.
    package var isFailure: Bool {
        switch self {
        case .closed, .abandoned, .moved, .shutDown: false
        case .saidByPeer(let goodbye): goodbye.code != .closed
        case .expired, .madeWay, .begunAgain, .storeDamaged, .misconfigured, .violated: true
        }
    }

    var isShutDown: Bool { if case .shutDown = self { true } else { false } }

    /// Whether this side dropped the remaining work: then handlers of received pushes are cancelled, too.
    package var dropsWork: Bool {
        switch self {
        case .abandoned, .expired, .madeWay, .begunAgain, .shutDown: true
        case .storeDamaged, .closed, .moved, .misconfigured, .violated, .saidByPeer: false
        }
    }

    /// Returns the goodbye for the peer; nil if the peer is not told.
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

/// The reason for which a client lost its session. The next connection begins a new one.
package enum SessionLoss: Sendable {
    /// The server no longer knows the session.
    case forgotten
    /// The server broke the rules.
    case violated(SessionViolation)
    /// The server says that this client broke the rules.
    case accused(SessionGoodbye)
}

/// How to end a connection.
package enum SessionClosing: Sendable, Hashable {
    /// Close it in order.
    case inOrder
    /// End this side once everything that was offered is written, even without room. A later close does not undo that.
    /// The peer ends its own side; if it does not in time, another action follows.
    case endSending
    /// Cut it: the server has not welcomed this client in time.
    case abortNotWelcomed
    /// Cut it: the peer broke the rules, as the text describes.
    case abortViolated(String)
    /// A client's session has ended: the owner of its connections closes this one, and makes no other.
    case byOwner

    /// Whether bytes offered before may be lost, even if there was room for them.
    var isCut: Bool {
        switch self {
        case .abortNotWelcomed, .abortViolated: true
        case .inOrder, .endSending, .byOwner: false
        }
    }
}
