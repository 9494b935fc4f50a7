/// A point on a clock that only goes forward and also runs while the machine sleeps (`CLOCK_BOOTTIME` on Linux).
///
/// It counts nanoseconds from a start that is the clock's own, so that only points of one clock can be compared. It
/// reaches 292 years; arithmetic that would leave that range ends at its edge.
public struct MonotonicTime: Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    public let nanoseconds: Int64

    /// Makes a point of time from nanoseconds since the clock's start.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The time that is `duration` later.
    public static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.saturatedNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (time.nanoseconds < 0 ? .min : .max) : sum)
    }

    /// The time that is `duration` earlier.
    public static func - (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        let (rest, overflow) = time.nanoseconds.subtractingReportingOverflow(duration.saturatedNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? (time.nanoseconds < 0 ? .min : .max) : rest)
    }

    /// How much later `end` is than `start`; negative when it is earlier.
    public static func - (end: MonotonicTime, start: MonotonicTime) -> Duration {
        let (rest, overflow) = end.nanoseconds.subtractingReportingOverflow(start.nanoseconds)
        return .nanoseconds(overflow ? (end.nanoseconds < 0 ? .min : .max) : rest)
    }
}

extension MonotonicTime: Comparable {
    /// Whether the first time is the earlier one.
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
    /// The longest time that a configuration takes: 365 days. It leaves arithmetic on deadlines room for centuries.
    package static let longest = Duration.seconds(365 * 24 * 3600)

    /// Whole nanoseconds, towards zero; at the edge of `Int64` where they do not fit.
    package var saturatedNanoseconds: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }

    /// The nearest duration of at least `least` and at most 365 days.
    package func clamped(atLeast least: Duration) -> Duration {
        min(max(self, least), .longest)
    }
}
