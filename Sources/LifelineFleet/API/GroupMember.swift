/// Somebody who is in a group, as the others are told: by one session or several.
public struct GroupMember: Sendable, Hashable {
    /// Tells members apart: sessions with one name are one member.
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

/// What has become of the members of a group.
public enum PresenceEvent: Sendable, Hashable {
    /// All who are there, in no order: the first event, and instead of single ones for which the reader was too slow.
    case present([GroupMember])
    /// Somebody is there who was not.
    case joined(GroupMember)
    /// Somebody is not there any more.
    case left(GroupMember)
}

extension GroupMember {
    private static let maximumNameByteCount = 255
    private static let maximumAttributeByteCount = 1_000

    /// Whether it is within its limits.
    package var isValid: Bool {
        let byteCount = attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        return (1...Self.maximumNameByteCount).contains(name.utf8.count) && byteCount <= Self.maximumAttributeByteCount
    }
}
