/// A session, as an engine knows it.
public struct FleetSession: Sendable, Hashable {
    /// Names it among all sessions.
    public let id: String
    /// Who does not have the same proof does not know the session.
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
