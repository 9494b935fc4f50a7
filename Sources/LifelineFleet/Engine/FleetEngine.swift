/// The part that the nodes of a fleet share: it stores the history of each group, and tells the nodes that follow it.
///
/// An engine gives each message of a group its offset, keeps as many as history asks for, and tells the nodes that
/// follow the group. What it tells may come late, twice, or never: nodes compare offsets, and read what they miss. The
/// answers to `append`, `follow` and `read` are right when they come.
///
/// `MemoryFleetEngine` is one for a single process.
public protocol FleetEngine: Sendable {
    /// A node takes part from now on. Called once for each, before anything else is asked for by it.
    func attach(_ node: FleetNode)

    /// A node takes part no longer.
    func detach(_ node: String)

    /// Works for a node until the task is cancelled.
    ///
    /// - Throws: `CancellationError`; why it cannot work, when that will not change.
    func run(_ node: String) async throws

    /// Adds a message to a group, and tells the nodes that follow it. Returns its position.
    ///
    /// - Throws: why it cannot. The message may be there nevertheless.
    func append(_ message: [UInt8], to group: String, keeping history: GroupHistory) async throws -> GroupPosition

    /// A node is told of new messages of a group from now on. Returns what the group's history has.
    func follow(_ group: String, _ node: String) async throws -> GroupPage

    /// A node is not told of them any more.
    func unfollow(_ group: String, _ node: String) async

    /// What the history of a group has behind an offset.
    func read(_ group: String, after offset: UInt64) async throws -> GroupPage

    /// The positions of the newest messages of groups, in the order of their names.
    func newest(of groups: [String]) async throws -> [GroupPosition]

    // MARK: Leases

    /// A node counts as alive for so long from now on, whatever it has asked for before.
    func renewLease(of node: String, for duration: Duration) async throws

    /// A node goes away now. Does not wait long for that; the lease ends by itself where it cannot be ended.
    func endLease(of node: String) async

    /// Returns those of the nodes that count as alive.
    func liveNodes(among nodes: [String]) async throws -> Set<String>

    // MARK: Sessions

    /// Whether other nodes can take what a node leaves.
    var isShared: Bool { get }

    /// A node has these sessions, for so long from now on. Those that another node has, or that are on their way, stay as
    /// they are.
    func claim(_ sessions: [FleetSession], for node: String, lifetime: Duration) async throws

    /// Leaves the state of a node's session for who takes it, for so long. Where the session was taken with a higher
    /// attempt, nothing happens: it has been left before. Doing it again does no harm.
    func park(_ state: [UInt8], of session: FleetSession, by node: String, lifetime: Duration) async throws

    /// Asks for a session. A state that was left is this node's, until another one asks for it with a higher attempt. It is
    /// to be used only once it is confirmed. Asking again with the same attempt does no harm.
    func take(_ session: FleetSession, for node: String) async throws -> FleetTake

    /// The state that a node has taken is used from now on, and forgotten. Confirming again does no harm.
    func confirm(_ session: FleetSession, by node: String, lifetime: Duration) async throws -> FleetConfirmation

    /// A node's session is over.
    func forget(_ session: FleetSession, by node: String) async throws

    // MARK: Nodes

    /// Tells a node something. Returns whether it listens; what it is told may be lost nevertheless.
    func tell(_ message: [UInt8], to node: String) async throws -> Bool

    // MARK: Presence

    /// A node's members of a group have changed. The engine takes a change that is based on the version that it has, or
    /// that is based on none and has a greater version. It keeps the members for so long from now on, and tells the nodes
    /// that watch the group. Returns the version that it has then; 0: none.
    func updatePresence(
        _ change: PresenceChange,
        of group: String,
        keepingFor lifetime: Duration
    ) async throws -> UInt64

    /// A node is told of changes of a group's members from now on.
    func watchPresence(of group: String, _ node: String) async throws

    /// A node is not told of them any more.
    func unwatchPresence(of group: String, _ node: String) async

    /// The versions of the nodes' members of groups, in the order of the groups' names. Those of one node are kept for so
    /// long from now on.
    func presenceVersions(
        of groups: [String],
        keeping node: String,
        for lifetime: Duration
    ) async throws -> [[String: UInt64]]

    /// A node's members of a group.
    func presence(of group: String, at node: String) async throws -> PresencePage
}

/// A process of a fleet, as its engine knows it.
public struct FleetNode: Sendable {
    /// Names the node among the others.
    public let name: String
    /// Takes news. Call it in the order of the news, from any thread; it does not wait, and does not call the engine.
    public let receive: @Sendable (FleetNews) -> Void

    /// Makes a node.
    public init(name: String, receive: @escaping @Sendable (FleetNews) -> Void) {
        (self.name, self.receive) = (name, receive)
    }
}

/// What an engine tells a node.
public enum FleetNews: Sendable {
    /// A group has a new message.
    case message([UInt8], at: GroupPosition, in: String)
    /// Another node has told this one something.
    case told([UInt8])
    /// A node's members of a group have changed.
    case presence(PresenceChange, in: String)
    /// News may have been lost, and what the engine has: compare all groups, and claim all sessions again.
    case interrupted
}

/// What the history of a group has, as far as it was asked for.
public struct GroupPage: Sendable {
    /// A message of the history.
    public struct Message: Sendable {
        /// Its offset.
        public let offset: UInt64
        /// How long ago it was pushed.
        public let age: Duration
        /// Its content.
        public let bytes: [UInt8]

        /// Makes a message.
        public init(offset: UInt64, age: Duration, bytes: [UInt8]) {
            (self.offset, self.age, self.bytes) = (offset, age, bytes)
        }
    }

    /// The position of the group's newest message, which the history need not have any more. Offset 0: there was none.
    public let newest: GroupPosition
    /// The messages, in the order of their offsets.
    public let messages: [Message]

    /// Makes a page.
    public init(newest: GroupPosition, messages: [Message]) { (self.newest, self.messages) = (newest, messages) }
}
