extension OutboundLog {
    /// The facts about a frame that the log's owner needs when it is acknowledged or sent again, in 32 bits.
    package struct Tag: BitwiseCopyable, Sendable, Hashable {
        /// The purpose of a frame.
        package enum Role: UInt32, BitwiseCopyable, Sendable {
            /// A frame that nobody waits for.
            case plain
            case request
            /// A frame whose acknowledgement somebody waits for.
            case awaited
            // Fillers come last: see `fillerCount`.
            /// A frame with a place and no content.
            case blank
            case method
        }

        private static var detailsBit: UInt32 { 1 << 27 }
        private static var acknowledgedBit: UInt32 { 1 << 26 }

        /// From the highest bit on: the role (4 bits), details, acknowledged.
        private var bits: UInt32

        package init(_ role: Role, hasDetails: Bool = false) {
            bits = role.rawValue << 28 | (hasDetails ? Self.detailsBit : 0)
        }

        package var role: Role { Role(rawValue: bits >> 28).unsafelyUnwrapped }

        /// Whether the owner of the log keeps more about the frame.
        package var hasDetails: Bool { bits & Self.detailsBit != 0 }

        /// Whether the frame means nothing by itself: a blank, or the name of a method.
        @inline(__always) var isFiller: Bool { bits >> 28 >= Role.blank.rawValue }

        /// Whether the frame was acknowledged, and only remains because earlier frames were not. Only the log uses it.
        @inline(__always) var isAcknowledged: Bool { bits & Self.acknowledgedBit != 0 }

        @inline(__always) mutating func markAcknowledged() { bits |= Self.acknowledgedBit }
    }
}
