/// A session, as an engine sees it.
public struct FleetSession: Sendable, Hashable {
    /// The id of the session.
    public let id: String
    /// A secret of the session. A node without it is told that the session is unknown.
    public let proof: [UInt8]
    /// The count of its client's connections. Of two nodes that want a session, the one with the higher attempt gets
    /// it.
    public let attempt: UInt64

    /// Makes a session.
    public init(id: String, proof: [UInt8], attempt: UInt64) {
        (self.id, self.proof, self.attempt) = (id, proof, attempt)
    }
}

/// An engine's answer to a node that asks for a session.
public enum FleetTake: Sendable, Hashable {
    /// No node has the session.
    case unknown
    /// A node has asked for the session with a higher attempt, or the same one.
    case stale
    /// This node has the session.
    case owned(by: String)
    /// The parked state of the session.
    case state([UInt8])
}

/// The result of confirming a state that a node has taken.
public enum FleetConfirmation: Sendable, Hashable {
    /// The state belongs to the node, and no other node gets it.
    case confirmed
    /// Another node has asked for the session since.
    case stale
    /// The engine no longer has the session, so it is unknown which node may continue it.
    case unknown
}
