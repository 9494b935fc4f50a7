internal import Glibc
internal import LifelineMessages

extension Google_Protobuf_Duration {
    /// A span of time, to the nanosecond; the rest is cut off towards zero.
    public init(_ duration: Swift.Duration) {
        self.init()
        (seconds, nanos) = duration.secondsAndNanoseconds
    }

    /// The span of time as Swift has it.
    public var duration: Swift.Duration { .seconds(seconds) + .nanoseconds(Int64(nanos)) }
}

extension Google_Protobuf_Timestamp {
    /// The moment that is `duration` after 1970-01-01T00:00:00Z, to the nanosecond.
    public init(sinceEpoch duration: Swift.Duration) {
        self.init()
        (seconds, nanos) = duration.secondsAndNanoseconds
        // A timestamp's nanoseconds count forward, before 1970 too (timestamp.proto).
        if nanos < 0 {
            (seconds, nanos) = seconds == .min ? (.min, 0) : (seconds - 1, nanos + 1_000_000_000)
        }
    }

    /// The moment at which it is called, by the system's clock.
    public static func now() -> Self {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Self(sinceEpoch: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec))
    }

    /// How long after 1970-01-01T00:00:00Z it is.
    public var sinceEpoch: Swift.Duration { .seconds(seconds) + .nanoseconds(Int64(nanos)) }
}

extension Swift.Duration {
    /// Both have the same sign, as google.protobuf.Duration wants it. Seconds that do not fit end at the edge: what a
    /// peer sends can be longer by the nanoseconds than `Int64` has seconds.
    fileprivate var secondsAndNanoseconds: (Int64, Int32) {
        let (seconds, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000_000)
        return (Int64(clamping: seconds), Int32(rest / 1_000_000_000))
    }
}
