/// A point on a clock that only goes forward and also runs while the machine sleeps (`CLOCK_BOOTTIME` on Linux).
///
/// It counts nanoseconds from the clock's own start, so only points of the same clock can be compared. Its range is 292
/// years; arithmetic that would leave the range saturates.
public struct MonotonicTime: Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    public let nanoseconds: Int64

    /// Makes a point of time from nanoseconds since the clock's start.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Returns the time that is `duration` later.
    public static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (time.nanoseconds < 0 ? .min : .max) : sum)
    }

    /// Returns the time that is `duration` earlier.
    public static func - (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (rest, overflow) = time.nanoseconds.subtractingReportingOverflow(duration.saturatedNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (time.nanoseconds < 0 ? .min : .max) : rest)
    }

    /// Returns the time from `start` to `end`; negative when `end` is earlier.
    public static func - (end: MonotonicTime, start: MonotonicTime) -> Duration {
        let (rest, overflow) = end.nanoseconds.subtractingReportingOverflow(start.nanoseconds)
        return .nanoseconds(overflow ? (end.nanoseconds < 0 ? .min : .max) : rest)
    }
}

extension MonotonicTime: Comparable {
    /// Returns whether the first time is the earlier one.
    public static func < (first: MonotonicTime, second: MonotonicTime) -> Bool {
        first.nanoseconds < second.nanoseconds
    }
}

extension MonotonicTime: CustomStringConvertible {
    /// Seconds since the clock's start, to the nanosecond: `12.345000000 s`.
    public var description: String {
        let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        // The leading 1 keeps the zeros after the point.
        return "\(nanoseconds < 0 ? "-" : "")\(seconds).\("\(1_000_000_000 + rest)".dropFirst()) s"
    }
}

extension Duration {
    /// The longest time in a configuration: 365 days. It leaves arithmetic on deadlines room for centuries.
    package static let longest = Duration.seconds(365 * 24 * 3600)

    /// Whole nanoseconds, rounded towards zero, and limited to the range of `Int64`.
    package var saturatedNanoseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }

    /// Returns the nearest duration of at least `least` and at most 365 days.
    package func clamped(atLeast least: Duration) -> Duration {
        min(max(self, least), .longest)
    }
}
