internal import LifelineMessages

// Results have `nanos` in the range of valid messages. They can be outside of the range of JSON: the years 1 to 9999,
// and spans of 10,000 years. A peer may send any numbers, so nothing here traps: results that the fields cannot hold
// are clamped. Unknown fields are not copied into results.

extension Google_Protobuf_Timestamp {
    /// The moment that is `duration` later. Parts of a nanosecond are cut off from `duration`. A moment that the fields
    /// cannot hold becomes the first or the last one.
    public static func + (moment: Self, duration: Swift.Duration) -> Self {
        Self(nanoseconds: moment.nanoseconds + duration.wholeNanoseconds)
    }

    /// The moment that is `duration` earlier. Parts of a nanosecond are cut off from `duration`. A moment that the
    /// fields cannot hold becomes the first or the last one.
    public static func - (moment: Self, duration: Swift.Duration) -> Self {
        Self(nanoseconds: moment.nanoseconds - duration.wholeNanoseconds)
    }

    /// The moment that is `duration` later, or the first or the last one if the fields cannot hold it.
    public static func + (moment: Self, duration: Google_Protobuf_Duration) -> Self { moment + duration.duration }

    /// The moment that is `duration` later, or the first or the last one if the fields cannot hold it.
    public static func + (duration: Google_Protobuf_Duration, moment: Self) -> Self { moment + duration.duration }

    /// The moment that is `duration` earlier, or the first or the last one if the fields cannot hold it.
    public static func - (moment: Self, duration: Google_Protobuf_Duration) -> Self { moment - duration.duration }

    /// The time from `right` to `left`: exact for all values of the fields, and negative if `left` is earlier.
    public static func - (left: Self, right: Self) -> Swift.Duration { left.sinceEpoch - right.sinceEpoch }

    /// Moves the moment later, as `+` does.
    public static func += (moment: inout Self, duration: Swift.Duration) { moment = moment + duration }

    /// Moves the moment earlier, as `-` does.
    public static func -= (moment: inout Self, duration: Swift.Duration) { moment = moment - duration }

    /// Moves the moment later, as `+` does.
    public static func += (moment: inout Self, duration: Google_Protobuf_Duration) { moment = moment + duration }

    /// Moves the moment earlier, as `-` does.
    public static func -= (moment: inout Self, duration: Google_Protobuf_Duration) { moment = moment - duration }
}

extension Google_Protobuf_Duration {
    /// The sum of two spans of time, or the longest span if the fields cannot hold it.
    public static func + (left: Self, right: Self) -> Self { Self(nanoseconds: left.nanoseconds + right.nanoseconds) }

    /// The difference of two spans of time, or the longest span if the fields cannot hold it.
    public static func - (left: Self, right: Self) -> Self { Self(nanoseconds: left.nanoseconds - right.nanoseconds) }

    /// The same span of time with the other sign, or the longest span if the fields cannot hold it.
    public static prefix func - (duration: Self) -> Self { Self(nanoseconds: -duration.nanoseconds) }

    /// Adds a span of time, as `+` does.
    public static func += (left: inout Self, right: Self) { left = left + right }

    /// Subtracts a span of time, as `-` does.
    public static func -= (left: inout Self, right: Self) { left = left - right }
}
