/// A client's claim to a session.
package struct SessionClaim: Sendable, Equatable {
    package let credentials: SessionCredentials
    /// The attempt number of the hello: of two claims the higher one counts.
    package let attempt: UInt64
    /// The client's identity, as the server has checked it; nil if it has none.
    package let subject: String?

    package init(credentials: SessionCredentials, attempt: UInt64, subject: String?) {
        (self.credentials, self.attempt, self.subject) = (credentials, attempt, subject)
    }
}

/// The result of a search for a session at the other servers.
package enum SessionFinding: Sendable, Equatable {
    /// No server has the session.
    case nothing
    /// The session is on its way here, and over everywhere else.
    case snapshot(SessionSnapshot)
    /// A newer connection has the session.
    case stale
    /// Another server has the session, and cannot hand it over now.
    case notNow
}

extension SessionFinding {
    var snapshot: SessionSnapshot? { if case .snapshot(let snapshot) = self { snapshot } else { nil } }
}

/// The answer of a server to a request for a session.
package enum SessionHandOver: Sendable, Equatable {
    /// The session is over here, and parked.
    case parked
    /// The session is not here, or does not belong to this client.
    case unknown
    /// A newer connection has the session.
    case stale
    /// Work of the session goes on here, and does not end soon.
    case busy
}
