/// The part that the nodes of a fleet share: it stores the history of each group, and notifies the nodes that follow
/// the group.
///
/// An engine gives each message of a group its offset, keeps as many messages as the history demands, and notifies the
/// nodes that follow the group. Notifications may come late, twice, or never: nodes compare offsets, and read missing
/// messages. The results of `append`, `follow` and `read` are correct at the time of the answer.
///
/// `MemoryFleetEngine` is an engine for a single process.
public protocol FleetEngine: Sendable {
    /// Adds a node. Called once for each node, before any other call for it.
    func attach(_ node: FleetNode)

    /// Removes a node.
    func detach(_ node: String)

    /// Works for a node until the task is cancelled.
    ///
    /// - Throws: `CancellationError`; the reason for a permanent failure.
    func run(_ node: String) async throws

    /// Adds a message to a group, and notifies the nodes that follow the group. Returns its position.
    ///
    /// - Throws: the reason for the failure. The message may have been added nevertheless.
    func append(_ message: [UInt8], to group: String, keeping history: GroupHistory) async throws -> GroupPosition

    /// Notifies a node of new messages of a group from now on. Returns the group's history.
    func follow(_ group: String, _ node: String) async throws -> GroupPage

    /// Stops notifying a node of a group's messages.
    func unfollow(_ group: String, _ node: String) async

    /// Returns the history of a group after an offset.
    func read(_ group: String, after offset: UInt64) async throws -> GroupPage

    /// Returns the positions of the newest messages of groups, in the order of the given names.
    func newest(of groups: [String]) async throws -> [GroupPosition]

    // MARK: Leases

    /// Makes a node count as alive for this long from now on, regardless of earlier leases.
    func renewLease(of node: String, for duration: Duration) async throws

    /// Ends the lease of a node that goes away. Does not wait long; a lease that cannot be ended expires by itself.
    func endLease(of node: String) async

    /// Returns those of the nodes that count as alive.
    func liveNodes(among nodes: [String]) async throws -> Set<String>

    // MARK: Sessions

    /// Whether other nodes can take sessions that a node leaves.
    var isShared: Bool { get }

    /// Records that a node has these sessions, for this long from now on. Sessions of another node, or on their way, do
    /// not change.
    func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws

    /// Keeps the state of a node's session for another node, for this long. Does nothing if the session was taken with
    /// a higher attempt: it was parked before. Repeating it does no harm.
    func park(_ state: [UInt8], of session: FleetSession, by node: String, lifetime: Duration) async throws

    /// Asks for a session. A parked state belongs to this node, until another one asks for it with a higher attempt.
    /// The node must not use it before it is confirmed. Repeating it with the same attempt does no harm.
    func take(_ session: FleetSession, for node: String) async throws -> FleetTake

    /// Confirms that a node uses the state that it has taken; the engine forgets the state. Repeating it does no harm.
    func confirm(_ session: FleetSession, by node: String, lifetime: Duration) async throws -> FleetConfirmation

    /// Forgets a node's session, which is over.
    func forget(_ session: FleetSession, by node: String) async throws

    // MARK: Nodes

    /// Sends a message to a node. Returns whether the node listens; the message may be lost nevertheless.
    func tell(_ message: [UInt8], to node: String) async throws -> Bool

    // MARK: Presence

    /// Changes a node's members of a group. The engine accepts a change that is based on its present version, or that
    /// has no base and a greater version. It keeps the members for this long from now on, and notifies the nodes that
    /// watch the group. Returns the engine's version afterwards; 0 for none.
    func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64

    /// Notifies a node of changes of a group's members from now on.
    func watchPresence(of group: String, _ node: String) async throws

    /// Stops notifying a node of changes of a group's members.
    func unwatchPresence(of group: String, _ node: String) async

    /// Returns the versions of the nodes' members of groups, in the order of the given names. The members of one node
    /// are kept for this long from now on.
    func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]]

    /// Returns a node's members of a group.
    func presence(of group: String, at node: String) async throws -> PresencePage
}

/// A process of a fleet, as its engine sees it.
public struct FleetNode: Sendable {
    /// The name of the node.
    public let name: String
    /// Receives news. Call it in the order of the news, from any thread. It neither waits nor calls the engine.
    public let receive: @Sendable (FleetNews) -> Void

    /// Makes a node.
    public init(name: String, receive: @escaping @Sendable (FleetNews) -> Void) {
        (self.name, self.receive) = (name, receive)
    }
}

/// A notification of an engine to a node.
public enum FleetNews: Sendable {
    /// A group has a new message.
    case message([UInt8], at: GroupPosition, in: String)
    /// Another node has sent a message to this one.
    case told([UInt8])
    /// A node's members of a group have changed.
    case presence(PresenceChange, in: String)
    /// News, or data of the engine, may have been lost: compare all groups, and claim all sessions again.
    case interrupted
}

/// A part of a group's history.
public struct GroupPage: Sendable {
    /// A message of the history.
    public struct Message: Sendable {
        /// The offset of the message.
        public let offset: UInt64
        /// The time since the message was pushed.
        public let age: Duration
        /// The content of the message.
        public let bytes: [UInt8]

        /// Makes a message.
        public init(offset: UInt64, age: Duration, bytes: [UInt8]) {
            (self.offset, self.age, self.bytes) = (offset, age, bytes)
        }
    }

    /// The position of the group's newest message, which the history may no longer have. The offset is 0 if there was
    /// none.
    public let newest: GroupPosition
    /// The messages, in the order of their offsets.
    public let messages: [Message]

    /// Makes a page.
    public init(newest: GroupPosition, messages: [Message]) { (self.newest, self.messages) = (newest, messages) }
}
