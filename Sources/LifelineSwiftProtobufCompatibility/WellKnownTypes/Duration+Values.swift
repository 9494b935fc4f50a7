public import FoundationEssentials
internal import LifelineMessages
internal import LifelineWellKnownTypes

// Values out of a field's range become the nearest value in it, and NaN becomes 0. Nothing here traps.
extension Google_Protobuf_Duration: ExpressibleByFloatLiteral {
    /// A span of time with these fields, which are not normalized.
    public init(seconds: Int64 = 0, nanos: Int32 = 0) {
        self = .with { ($0.seconds, $0.nanos) = (seconds, nanos) }
    }

    /// A span of this many seconds.
    public init(floatLiteral value: Double) { self.init(rounding: value) }

    /// A span of this many seconds, rounded to the nearest nanosecond.
    public init(timeInterval: TimeInterval) { self.init(rounding: timeInterval) }

    /// A span of this many seconds, rounded to a nanosecond.
    public init(rounding timeInterval: TimeInterval, rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero) {
        self = LifelineWellKnownTypes.Google_Protobuf_Duration(rounding: timeInterval, rule: rule).twin()
    }

    /// A span of time, rounded to a nanosecond.
    public init(rounding duration: Swift.Duration, rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero) {
        self = LifelineWellKnownTypes.Google_Protobuf_Duration(rounding: duration, rule: rule).twin()
    }

    /// The span in seconds.
    public var timeInterval: TimeInterval { ordinary.timeInterval }

    var ordinary: LifelineWellKnownTypes.Google_Protobuf_Duration { twin() }
}

extension Swift.Duration {
    /// The span of time in Swift's type.
    public init(_ duration: Google_Protobuf_Duration) { self = duration.ordinary.duration }
}

extension Google_Protobuf_Duration {
    /// The same duration with the other sign.
    public static prefix func - (duration: Self) -> Self { (-duration.ordinary).twin() }

    /// The sum of two durations.
    public static func + (left: Self, right: Self) -> Self { (left.ordinary + right.ordinary).twin() }

    /// The difference of two durations.
    public static func - (left: Self, right: Self) -> Self { (left.ordinary - right.ordinary).twin() }
}
