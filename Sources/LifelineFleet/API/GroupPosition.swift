public import Lifeline

/// A place in a group: after one of its messages.
///
/// An application that keeps the position of the last message that it has handled can join after that message later,
/// even after a restart.
public struct GroupPosition: Sendable, Hashable, LosslessStringConvertible {
    /// The epoch of the group's history. It changes when the history is lost: positions of other epochs are then
    /// meaningless.
    public let epoch: UInt64
    /// The count of messages of the epoch, from 1 on; 0 before the first one.
    public let offset: UInt64

    /// Makes a position.
    public init(epoch: UInt64, offset: UInt64) { (self.epoch, self.offset) = (epoch, offset) }

    /// Reads the description of a position; nil for other texts.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.first != UInt8(ascii: "+") }),
            let epoch = UInt64(parts[0], radix: 16), let offset = UInt64(parts[1])
        else { return nil }
        self.init(epoch: epoch, offset: offset)
    }

    /// The epoch in hexadecimal digits, and the offset: `5e3a1-17`.
    public var description: String { "\(String(epoch, radix: 16))-\(offset)" }
}

/// The first message of a group that a new member gets.
public enum GroupStart: Sendable, Hashable {
    /// The first message pushed from now on.
    case now
    /// The first message after a position. If the history does not reach back that far, the first one pushed from now
    /// on.
    case after(GroupPosition)
    /// The first message of the history.
    case earliest
}

/// The result of joining a group.
public struct GroupJoin: Sendable, Hashable {
    /// The position before the first message that the member gets.
    public let position: GroupPosition
    /// Whether all messages after the requested position will come. If not, those that are pushed from now on will.
    public let isRecovered: Bool

    /// Makes a result.
    public init(position: GroupPosition, isRecovered: Bool) {
        (self.position, self.isRecovered) = (position, isRecovered)
    }
}

/// The limits of the messages that are kept for members that come back, are slow, or join late. The first limit reached
/// counts.
public struct GroupHistory: Sendable, Hashable {
    /// The most messages. Default: 100.
    public var maximumCount = 100
    /// The most bytes of all messages. Default: 1 MiB.
    public var maximumByteCount = 1 << 20
    /// The longest age of a message. Default: 5 min.
    public var maximumAge = Duration.seconds(300)

    /// Makes a history with the default values.
    public init() {}
}

/// The facts about a push to a group, from its metadata.
public struct GroupMark: Sendable, Hashable {
    /// The group's name.
    public let group: String
    /// The place after this message. A member that joins after it gets the next message first.
    public let position: GroupPosition
    /// Whether the message is from the history, because it was pushed before the session had joined.
    public let isRecovered: Bool
    /// Whether messages before this one are lost: the member was away or slow for longer than the history reaches, or
    /// the history was lost. It may be true although none are missing.
    public let followsGap: Bool
}

extension SessionPush {
    /// The facts about its group; nil if it was pushed only to this session.
    public var group: GroupMark? { metadata[GroupMetadata.key].flatMap { GroupMark($0) } }
}

extension GroupMark {
    private static let recovered = "+recovered"
    private static let gap = "+gap"

    /// Reads the metadata value of a mark; nil if it is malformed.
    init?(_ value: String) {
        guard let (group, place) = GroupMetadata.parts(of: value) else { return nil }
        self.init(group: String(group), place: place)
    }

    private init?(group: String, place: Substring) {
        var parts = place.split(separator: "+", omittingEmptySubsequences: false)[...]
        guard let first = parts.popFirst(), let position = GroupPosition(String(first)) else { return nil }
        self.init(
            group: group,
            position: position,
            isRecovered: parts.contains(Self.recovered.dropFirst()),
            followsGap: parts.contains(Self.gap.dropFirst())
        )
    }

    /// Returns the position of a place that a client has noted.
    static func position(ofPlace place: String) -> GroupPosition? { GroupMark(group: "", place: place[...])?.position }

    /// Returns a mark of the greatest length for a group.
    static func longest(_ group: String) -> GroupMark {
        let position = GroupPosition(epoch: .max, offset: .max)
        return GroupMark(group: group, position: position, isRecovered: true, followsGap: true)
    }

    /// The metadata entry of the mark.
    var metadata: (key: String, value: String) {
        let place = "\(position)\(isRecovered ? Self.recovered : "")\(followsGap ? Self.gap : "")"
        return (GroupMetadata.key, GroupMetadata.value(group: group, place: place))
    }
}
