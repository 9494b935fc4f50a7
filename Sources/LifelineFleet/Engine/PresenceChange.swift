/// A change of a node's members of a group.
public struct PresenceChange: Sendable, Hashable {
    /// The name of the node.
    public let node: String
    /// The count of this node's changes, below 2⁵³.
    public let version: UInt64
    /// The version that the change is based on. Nil in a change for the engine means that `present` has all members; in
    /// news, that all members have to be read again.
    public let base: UInt64?
    /// The members that have arrived, or whose attributes have changed.
    public let present: [GroupMember]
    /// The names of the members that have left.
    public let absent: [String]

    /// Makes a change.
    public init(node: String, version: UInt64, base: UInt64?, present: [GroupMember], absent: [String]) {
        (self.node, self.version, self.base) = (node, version, base)
        (self.present, self.absent) = (present, absent)
    }
}

/// A node's members of a group, from the engine.
public struct PresencePage: Sendable {
    /// The node's newest version; 0 if the engine has none.
    public let version: UInt64
    /// The members.
    public let members: [GroupMember]

    /// Makes a page.
    public init(version: UInt64, members: [GroupMember]) { (self.version, self.members) = (version, members) }
}
