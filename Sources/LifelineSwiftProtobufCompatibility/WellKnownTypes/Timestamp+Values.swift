public import FoundationEssentials
internal import LifelineMessages
internal import LifelineWellKnownTypes

// Values out of a field's range become the nearest value in it, and NaN becomes 0. Nothing here traps.
extension Google_Protobuf_Timestamp {
    /// The seconds from 1970 to 2001, the reference date.
    private static let referenceDate: Int64 = 978_307_200

    /// A moment with these fields, which are not normalized.
    public init(seconds: Int64 = 0, nanos: Int32 = 0) {
        self = .with { ($0.seconds, $0.nanos) = (seconds, nanos) }
    }

    /// The moment of a date, rounded to the nearest nanosecond.
    public init(date: Date) {
        self.init(roundingTimeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate)
    }

    /// The moment this many seconds after 1970-01-01T00:00:00Z, rounded to the nearest nanosecond.
    public init(timeIntervalSince1970: TimeInterval) { self.init(roundingTimeIntervalSince1970: timeIntervalSince1970) }

    /// The moment this many seconds after 1970-01-01T00:00:00Z, rounded to a nanosecond.
    public init(
        roundingTimeIntervalSince1970 timeInterval: TimeInterval,
        rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
    ) {
        self =
            LifelineWellKnownTypes.Google_Protobuf_Timestamp(
                roundingTimeIntervalSince1970: timeInterval,
                rule: rule
            ).twin()
    }

    /// The moment this many seconds after 2001-01-01T00:00:00Z, rounded to the nearest nanosecond.
    public init(timeIntervalSinceReferenceDate: TimeInterval) {
        self.init(roundingTimeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate)
    }

    /// The moment this many seconds after 2001-01-01T00:00:00Z, rounded to a nanosecond.
    public init(
        roundingTimeIntervalSinceReferenceDate timeInterval: TimeInterval,
        rule: FloatingPointRoundingRule = .toNearestOrAwayFromZero
    ) {
        // Added as whole seconds, because the sum of the floating-point numbers would lose digits.
        let moment = Self(roundingTimeIntervalSince1970: timeInterval, rule: rule)
        self = (moment.ordinary + .seconds(Self.referenceDate)).twin()
    }

    /// The date of the moment.
    public var date: Date { Date(timeIntervalSinceReferenceDate: timeIntervalSinceReferenceDate) }

    /// The seconds since 1970-01-01T00:00:00Z.
    public var timeIntervalSince1970: TimeInterval { ordinary.timeIntervalSince1970 }

    /// The seconds since 2001-01-01T00:00:00Z.
    public var timeIntervalSinceReferenceDate: TimeInterval {
        Double(seconds) - Double(Self.referenceDate) + Double(nanos) / 1_000_000_000
    }

    private var ordinary: LifelineWellKnownTypes.Google_Protobuf_Timestamp { twin() }
}

extension Google_Protobuf_Timestamp {
    /// The time that is later by a duration.
    public static func + (moment: Self, duration: Google_Protobuf_Duration) -> Self {
        (moment.ordinary + duration.ordinary).twin()
    }

    /// The time that is later by a duration.
    public static func + (duration: Google_Protobuf_Duration, moment: Self) -> Self { moment + duration }

    /// The time that is earlier by a duration.
    public static func - (moment: Self, duration: Google_Protobuf_Duration) -> Self {
        (moment.ordinary - duration.ordinary).twin()
    }

    /// The duration from one time to another.
    public static func - (left: Self, right: Self) -> Google_Protobuf_Duration {
        LifelineWellKnownTypes.Google_Protobuf_Duration(left.ordinary - right.ordinary).twin()
    }
}
