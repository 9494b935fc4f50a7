/// A session, as a client claims it.
package struct SessionClaim: Sendable, Equatable {
    package let credentials: SessionCredentials
    /// That of the hello: of two claims the higher one counts.
    package let attempt: UInt64
    /// The client's identity, as the server has checked it; nil: it has none.
    package let subject: String?

    package init(credentials: SessionCredentials, attempt: UInt64, subject: String?) {
        (self.credentials, self.attempt, self.subject) = (credentials, attempt, subject)
    }
}

/// The result of a search for a session at the other servers.
package enum SessionFinding: Sendable, Equatable {
    /// Nobody has it.
    case nothing
    /// It is on its way here, and over everywhere else.
    case snapshot(SessionSnapshot)
    /// A newer connection has it.
    case stale
    /// Another server has it, and cannot give it away now.
    case notNow
}

extension SessionFinding {
    var snapshot: SessionSnapshot? { if case .snapshot(let snapshot) = self { snapshot } else { nil } }
}

/// The answer of a server that is asked for a session.
package enum SessionHandOver: Sendable, Equatable {
    /// It is over here, and parked.
    case parked
    /// It is not here, or not this client's.
    case unknown
    /// A newer connection has it.
    case stale
    /// Something of it goes on here, and does not end soon.
    case busy
}
