public import Lifeline

/// How the groups of a fleet behave.
public struct FleetConfiguration: Sendable {
    /// How much of each group is kept. All nodes of a fleet should have the same.
    public var history = GroupHistory()

    /// Decides whether a client may join a group by itself, or watch who is in it without being a member: throw a
    /// `SessionStatus` to refuse it, whose message the client gets. Default: none may, and the server's code makes all
    /// members.
    public var mayJoin: @Sendable (_ group: String, _ session: SessionServerEnd) async throws -> Void = { _, _ in
        throw SessionStatus(.permissionDenied, "Clients do not join groups of this server by themselves.")
    }

    /// The groups that a session is a member of from its beginning: one for everybody, for example, and one for all
    /// sessions of its user. Asked again where the session comes from another server. Default: none.
    public var automaticGroups: @Sendable (_ session: SessionServerEnd) -> [String] = { _ in [] }

    /// In how many groups one session may be. Values below 1 count as 1. Default: 256.
    public var maximumGroupCountPerSession = 256

    /// How many bytes of a group are kept at each node beyond the history while a member there takes messages more slowly
    /// than they come. Default: 1 MiB.
    public var slowMemberByteCount = 1 << 20

    /// How often a node compares its groups with the engine's, to find messages that it was not told of. Default: 5 s.
    public var comparisonInterval = Duration.seconds(5)

    /// How long a node counts as alive after it was heard of last. It renews that three times as often. Default: 10 s.
    public var leaseDuration = Duration.seconds(10)

    /// Says as which member a session is present in a group, so that others see it; nil: as none. Sessions with one name
    /// are one member. Asked when the session joins. Default: none is present.
    ///
    ///     configuration.presence = { _, session in session.identity.map { GroupMember($0.subject) } }
    public var presence: @Sendable (_ group: String, _ session: SessionServerEnd) -> GroupMember? = { _, _ in nil }

    /// How long a member may be away before it has left: one that is there again by then, at whichever node, was never
    /// away. Default: 3 s.
    public var presenceGrace = Duration.seconds(3)

    /// Makes a configuration with the default values.
    public init() {}
}
