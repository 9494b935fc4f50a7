public import Lifeline

/// A place in a group: behind one of its messages.
///
/// An application that keeps the position of the last message that it has handled can join behind it later, also after
/// it was started again.
public struct GroupPosition: Sendable, Hashable, LosslessStringConvertible {
    /// Changes when the history of the group is lost: positions of another epoch mean nothing any more.
    public let epoch: UInt64
    /// Counts the messages of the epoch, from 1 on; 0: in front of the first.
    public let offset: UInt64

    /// Makes a position.
    public init(epoch: UInt64, offset: UInt64) { (self.epoch, self.offset) = (epoch, offset) }

    /// Reads its description; nil when it is none.
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

/// Which messages of a group a new member gets first.
public enum GroupStart: Sendable, Hashable {
    /// Those that are pushed from now on.
    case now
    /// Those behind a position. Where the history does not reach back so far, those that are pushed from now on.
    case after(GroupPosition)
    /// All that the history has.
    case earliest
}

/// How a session has become a member of a group.
public struct GroupJoin: Sendable, Hashable {
    /// Behind which message the first one comes.
    public let position: GroupPosition
    /// Whether all messages behind the position that was asked for will come. Else those that are pushed from now on
    /// will.
    public let isRecovered: Bool

    /// Makes a description of one.
    public init(position: GroupPosition, isRecovered: Bool) {
        (self.position, self.isRecovered) = (position, isRecovered)
    }
}

/// How much of a group is kept for members that come back, are slow, or join late. The first limit that is reached
/// counts.
public struct GroupHistory: Sendable, Hashable {
    /// How many messages. Default: 100.
    public var maximumCount = 100
    /// How many bytes they take. Default: 1 MiB.
    public var maximumByteCount = 1 << 20
    /// How old they are. Default: 5 min.
    public var maximumAge = Duration.seconds(300)

    /// Makes a history with the default values.
    public init() {}
}

/// What the metadata of a push says of the group that it was pushed to.
public struct GroupMark: Sendable, Hashable {
    /// The group's name.
    public let group: String
    /// The place behind this message: join after it, and the next one comes first.
    public let position: GroupPosition
    /// Whether the message is from the history: it was pushed before the session had joined.
    public let isRecovered: Bool
    /// Whether messages before this one will not come: the member was away or slow for longer than the history reaches, or
    /// the history was lost. It may be said where none are missing.
    public let followsGap: Bool
}

extension SessionPush {
    /// The group that it was pushed to; nil: it was pushed to this session alone.
    public var group: GroupMark? { metadata[GroupMetadata.key].flatMap { GroupMark($0) } }
}

extension GroupMark {
    private static let recovered = "+recovered"
    private static let gap = "+gap"

    /// Reads the value of its metadata; nil when it is none.
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

    /// The position of a place that a client has noted.
    static func position(ofPlace place: String) -> GroupPosition? { GroupMark(group: "", place: place[...])?.position }

    /// As long as one can be, for messages to a group.
    static func longest(_ group: String) -> GroupMark {
        let position = GroupPosition(epoch: .max, offset: .max)
        return GroupMark(group: group, position: position, isRecovered: true, followsGap: true)
    }

    /// Its metadata.
    var metadata: (key: String, value: String) {
        let place = "\(position)\(isRecovered ? Self.recovered : "")\(followsGap ? Self.gap : "")"
        return (GroupMetadata.key, GroupMetadata.value(group: group, place: place))
    }
}
