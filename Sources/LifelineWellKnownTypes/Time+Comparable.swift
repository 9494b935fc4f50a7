internal import LifelineMessages

// Two messages with the same time can be unequal: by unknown fields, or because `nanos` is out of range in one of them.
// They also have an order, because `Comparable` requires it: exactly one of a < b, a == b and a > b is true.

extension Google_Protobuf_Timestamp: Comparable {
    /// Whether a moment is earlier than another. Unequal messages of the same moment are ordered by `seconds`, then by
    /// their unknown fields; compare ``sinceEpoch`` to treat them alike.
    public static func < (left: Self, right: Self) -> Bool { left.precedes(right) }
}

extension Google_Protobuf_Duration: Comparable {
    /// Whether a span of time is less than another. Unequal messages of the same span are ordered by `seconds`, then by
    /// their unknown fields; compare ``duration`` to treat them alike.
    public static func < (left: Self, right: Self) -> Bool { left.precedes(right) }
}

extension TimeMessage {
    fileprivate func precedes(_ other: Self) -> Bool {
        let (own, others) = (nanoseconds, other.nanoseconds)
        if own != others { return own < others }
        if seconds != other.seconds { return seconds < other.seconds }
        return unknownFields.lexicographicallyPrecedes(other.unknownFields)
    }
}
