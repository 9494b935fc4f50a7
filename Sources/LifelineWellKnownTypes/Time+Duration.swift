internal import Glibc
internal import LifelineMessages

extension Google_Protobuf_Duration {
    /// A span of time, to the nanosecond; the rest is cut off towards zero. One that is too long for the fields becomes
    /// the longest one.
    public init(_ duration: Swift.Duration) { self.init(nanoseconds: duration.wholeNanoseconds) }

    /// A span of time, rounded to a nanosecond. One that is too long for the fields becomes the longest one.
    public init(rounding duration: Swift.Duration, rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero) {
        // Pairs of nanoseconds, because rounding to even needs the last digit.
        let (pairs, rest) = duration.attoseconds.quotientAndRemainder(dividingBy: 2_000_000_000)
        self.init(nanoseconds: 2 * pairs + Int128((Double(rest) / 1_000_000_000).rounded(rule)))
    }

    /// The span of time as a Swift duration.
    public var duration: Swift.Duration { .seconds(seconds) + .nanoseconds(Int64(nanos)) }
}

extension Google_Protobuf_Timestamp {
    /// The moment that is `duration` after 1970-01-01T00:00:00Z, to the nanosecond; the rest is cut off towards that
    /// moment. One that the fields cannot hold becomes the first or the last one.
    public init(sinceEpoch duration: Swift.Duration) { self.init(nanoseconds: duration.wholeNanoseconds) }

    /// Returns the present moment, by the system's clock.
    public static func now() -> Self {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Self(sinceEpoch: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
    }

    /// The time since 1970-01-01T00:00:00Z.
    public var sinceEpoch: Swift.Duration { .seconds(seconds) + .nanoseconds(Int64(nanos)) }
}
