/// A session, as an engine knows it.
public struct FleetSession: Sendable, Hashable {
    /// Names it among all sessions.
    public let id: String
    /// A secret of the session. A node without it is told that the session is unknown.
    public let proof: [UInt8]
    /// Counts the connections of its client: of two nodes that want a session, the one with the higher attempt gets it.
    public let attempt: UInt64

    /// Makes one.
    public init(id: String, proof: [UInt8], attempt: UInt64) {
        (self.id, self.proof, self.attempt) = (id, proof, attempt)
    }
}

/// What an engine has of a session that a node asks for.
public enum FleetTake: Sendable, Hashable {
    /// Nobody has it.
    case unknown
    /// A node has asked for it with a higher attempt, or the same one.
    case stale
    /// This node has it.
    case owned(by: String)
    /// Its state, which was left for who asks.
    case state([UInt8])
}

/// The fate of a state that a node has taken.
public enum FleetConfirmation: Sendable, Hashable {
    /// It is the node's, and nobody else gets it.
    case confirmed
    /// Another node has asked for it since.
    case stale
    /// The engine does not have the session any more, so that nobody knows who may go on with it.
    case unknown
}
