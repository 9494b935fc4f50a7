internal import LifelineMessages

extension Google_Protobuf_Duration {
    /// A span of time with these fields, which are kept unchanged. In a valid one, `nanos` is below 1,000,000,000
    /// either way, and has the sign of `seconds` unless either is 0.
    public init(seconds: Int64 = 0, nanos: Int32 = 0) {
        self = .with { ($0.seconds, $0.nanos) = (seconds, nanos) }
    }

    /// A span of this many seconds, rounded to a nanosecond. One that is too long for the fields, or infinite, becomes
    /// the longest one; NaN becomes 0.
    public init(rounding timeInterval: Double, rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero) {
        self.init(nanoseconds: timeInterval.nanoseconds(rounded: rule))
    }

    /// A span of this many seconds, rounded to the nearest nanosecond, halves away from zero. Numbers that do not fit
    /// are handled as in `init(rounding:rule:)`.
    public init(timeInterval: Double) { self.init(rounding: timeInterval) }

    /// The span in seconds, as precisely as a `Double` can be.
    public var timeInterval: Double { inSeconds }
}

extension Google_Protobuf_Duration: ExpressibleByFloatLiteral {
    /// A span of this many seconds, rounded to the nearest nanosecond.
    public init(floatLiteral value: Double) { self.init(rounding: value) }
}

extension Google_Protobuf_Timestamp {
    /// A moment with these fields, which are kept unchanged: seconds since 1970-01-01T00:00:00Z, and nanoseconds that
    /// count forward, also before 1970. In a valid one, `nanos` is from 0 to 999,999,999.
    public init(seconds: Int64 = 0, nanos: Int32 = 0) {
        self = .with { ($0.seconds, $0.nanos) = (seconds, nanos) }
    }

    /// The moment this many seconds after 1970-01-01T00:00:00Z, rounded to a nanosecond. One that the fields cannot
    /// hold becomes the first or the last one; NaN becomes 0 seconds.
    public init(
        roundingTimeIntervalSince1970 timeInterval: Double,
        rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
    ) {
        self.init(nanoseconds: timeInterval.nanoseconds(rounded: rule))
    }

    /// The moment this many seconds after 1970-01-01T00:00:00Z, rounded to the nearest nanosecond, halves away from
    /// zero. Numbers that do not fit are handled as in ``init(roundingTimeIntervalSince1970:rule:)``.
    public init(timeIntervalSince1970: Double) { self.init(roundingTimeIntervalSince1970: timeIntervalSince1970) }

    /// The seconds since 1970-01-01T00:00:00Z. For present dates, a `Double` is precise to about a quarter of a
    /// microsecond.
    public var timeIntervalSince1970: Double { inSeconds }
}

extension TimeMessage {
    fileprivate var inSeconds: Double { Double(seconds) + Double(nanos) / 1_000_000_000 }
}

extension Double {
    /// Returns this many seconds in nanoseconds. NaN becomes 0.
    fileprivate func nanoseconds(rounded rule: FloatingPointRoundingRule) -> Int128 {
        if isNaN { return 0 }
        // More than Int64 can hold, and few enough to multiply.
        let seconds = min(max(self, -1e19), 1e19)
        let whole = seconds.rounded(.towardZero)
        return Int128(whole) * 1_000_000_000 + Int128(((seconds - whole) * 1_000_000_000).rounded(rule))
    }
}
