/// A member of a group as others see it: present with one or several sessions.
public struct GroupMember: Sendable, Hashable {
    /// The name of the member. Sessions with the same name are one member.
    public let name: String
    /// Further facts about the member, chosen by the application. They may change without an event.
    public let attributes: [String: String]

    /// Makes a member.
    ///
    /// - Parameters:
    ///   - name: from 1 to 255 bytes of UTF-8.
    ///   - attributes: up to 1,000 bytes of UTF-8 all together.
    public init(_ name: String, attributes: [String: String] = [:]) {
        (self.name, self.attributes) = (name, attributes)
    }
}

/// A change of the members of a group.
public enum PresenceEvent: Sendable, Hashable {
    /// All present members, in no order. This is the first event, and replaces single events when the reader is too
    /// slow.
    case present([GroupMember])
    /// A member has arrived.
    case joined(GroupMember)
    /// A member has left.
    case left(GroupMember)
}

extension GroupMember {
    private static let maximumNameByteCount = 255
    private static let maximumAttributeByteCount = 1_000

    /// Whether name and attributes are within their limits.
    package var isValid: Bool {
        let byteCount = attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        return (1...Self.maximumNameByteCount).contains(name.utf8.count) && byteCount <= Self.maximumAttributeByteCount
    }
}
