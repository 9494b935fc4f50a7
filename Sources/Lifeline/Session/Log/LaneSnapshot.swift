/// The frames of one lane that the peer has not acknowledged, so that another server can continue with them.
package struct LaneSnapshot: Sendable, Equatable {
    /// A frame that the peer has not acknowledged.
    package struct Frame: Sendable, Equatable {
        package let place: UInt64
        /// The bytes with the length in front.
        package let bytes: [UInt8]
        package let role: Role

        package init(place: UInt64, bytes: [UInt8], role: Role) {
            (self.place, self.bytes, self.role) = (place, bytes, role)
        }
    }

    package enum Role: Sendable, Equatable {
        /// It is always sent unchanged.
        case plain
        /// A message that may be left out.
        case special(Details)
        /// The name of a method.
        case method
        /// It has a place and no content.
        case blank
    }

    /// The key and the time to live of a message.
    package struct Details: Sendable, Equatable {
        package let key: String?
        /// The remaining time to live; nil for no limit.
        package let timeLeft: Duration?

        package init(key: String? = nil, timeLeft: Duration? = nil) { (self.key, self.timeLeft) = (key, timeLeft) }
    }

    /// The place of the next frame.
    package let next: UInt64
    /// The place after the last frame that was sent.
    package let sentEnd: UInt64
    /// The frames in the order of their places. Those missing after the first one were acknowledged.
    package let frames: [Frame]

    package init(next: UInt64, sentEnd: UInt64, frames: [Frame]) {
        (self.next, self.sentEnd, self.frames) = (next, sentEnd, frames)
    }
}
