public import Lifeline

/// The settings of a fleet and its groups.
public struct FleetConfiguration: Sendable {
    /// The limits of each group's history. All nodes of a fleet should have the same.
    public var history = GroupHistory()

    /// Decides whether a client may join a group by itself, or watch its members without being one. Throw a
    /// `SessionStatus` to refuse; the client gets its message. Default: no client may, and only the server's code adds
    /// members.
    public var mayJoin: @Sendable (_ group: String, _ session: SessionServerEnd) async throws -> Void = { _, _ in
        throw SessionStatus(.permissionDenied, "Clients do not join groups of this server by themselves.")
    }

    /// Returns the groups that a session is a member of from its beginning: for example, one for everybody, and one for
    /// all sessions of its user. Called again when the session comes from another server. Default: none.
    public var automaticGroups: @Sendable (_ session: SessionServerEnd) -> [String] = { _ in [] }

    /// The most groups that one session may be in. Values below 1 count as 1. Default: 256.
    public var maximumGroupCountPerSession = 256

    /// How many bytes of a group beyond the history each node keeps for members that take messages more slowly than
    /// they arrive. Default: 1 MiB.
    public var slowMemberByteCount = 1 << 20

    /// How often a node compares its groups with the engine's, to find messages that it was not notified of. Default: 5
    /// s.
    public var comparisonInterval = Duration.seconds(5)

    /// How long a node counts as alive after its last renewal. Nodes renew three times as often. Default: 10 s.
    public var leaseDuration = Duration.seconds(10)

    /// Returns the member that a session appears as to others in a group; nil to hide it. Sessions with the same name
    /// are one member. Called when the session joins. Default: all are hidden.
    ///
    ///     configuration.presence = { _, session in session.identity.map { GroupMember($0.subject) } }
    public var presence: @Sendable (_ group: String, _ session: SessionServerEnd) -> GroupMember? = { _, _ in nil }

    /// How long a member may be away before it counts as left. A member that is back by then, at any node, was never
    /// away. Default: 3 s.
    public var presenceGrace = Duration.seconds(3)

    /// Makes a configuration with the default values.
    public init() {}
}
