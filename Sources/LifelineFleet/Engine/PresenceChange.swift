/// How a node's members of a group have changed.
public struct PresenceChange: Sendable, Hashable {
    /// The name of the node.
    public let node: String
    /// Counts the changes of this node. Below 2⁵³.
    public let version: UInt64
    /// The version of which these are the changes. Nil: for the engine, `present` has all members; as news, all members
    /// are to be read again.
    public let base: UInt64?
    /// Who is there since, or is told of in another way.
    public let present: [GroupMember]
    /// The names of those who are there no more.
    public let absent: [String]

    /// Makes a change.
    public init(node: String, version: UInt64, base: UInt64?, present: [GroupMember], absent: [String]) {
        (self.node, self.version, self.base) = (node, version, base)
        (self.present, self.absent) = (present, absent)
    }
}

/// A node's members of a group, as the engine has them.
public struct PresencePage: Sendable {
    /// The node's newest version; 0: the engine has nothing of it.
    public let version: UInt64
    /// The members.
    public let members: [GroupMember]

    /// Makes a page.
    public init(version: UInt64, members: [GroupMember]) { (self.version, self.members) = (version, members) }
}
