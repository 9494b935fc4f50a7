/// The kind of a frame: its field number in the `Frame` message. Later versions may have others.
package struct FrameKind: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt32

    @inline(__always) package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    // 1 to 7: frames without a place.
    package static let hello = FrameKind(rawValue: 1)
    package static let welcome = FrameKind(rawValue: 2)
    package static let goodbye = FrameKind(rawValue: 3)
    package static let ping = FrameKind(rawValue: 4)
    package static let pong = FrameKind(rawValue: 5)
    package static let acknowledgement = FrameKind(rawValue: 6)
    package static let credit = FrameKind(rawValue: 7)

    // 8 to 31: the ordinary lane.
    package static let push = FrameKind(rawValue: 8)
    package static let request = FrameKind(rawValue: 9)
    package static let requestPart = FrameKind(rawValue: 10)
    package static let requestEnd = FrameKind(rawValue: 11)
    package static let responsePart = FrameKind(rawValue: 12)
    /// Ends a request whose answer had parts.
    package static let response = FrameKind(rawValue: 13)
    package static let method = FrameKind(rawValue: 14)
    package static let blank = FrameKind(rawValue: 15)

    // 32 to 47: the urgent lane.
    /// Ends a request whose answer had no parts.
    package static let urgentResponse = FrameKind(rawValue: 32)
    package static let cancel = FrameKind(rawValue: 33)

    // 48 and above: frames without a place, which are sent at most once.
    package static let unplacedPush = FrameKind(rawValue: 48)
    package static let unplacedRequestPart = FrameKind(rawValue: 49)
    package static let unplacedResponsePart = FrameKind(rawValue: 50)

    /// The field of the kind's message that has its metadata.
    var metadataField: UInt32 { self == .push || self == .unplacedPush ? 2 : 5 }

    /// The field of a push that has its number among the durable messages of its sender.
    static var durableField: UInt32 { 4 }
    /// The field of a durable push that asks for a reply.
    static var callField: UInt32 { 5 }
    /// The field of a push that contains the reply to a durable call, without its message.
    static var replyField: UInt32 { 6 }
    /// The field of a durable push with the number up to which no more messages come.
    static var floorField: UInt32 { 7 }

    /// The lane in which frames of this kind have places; nil for frames without a place.
    package var lane: SessionLane? {
        switch rawValue {
        case 8...31: .ordinary
        case 32...47: .urgent
        default: nil
        }
    }
}
