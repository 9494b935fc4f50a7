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
            seconds -= 1
            nanos += 1_000_000_000
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
    /// Both have the same sign, as google.protobuf.Duration wants it.
    fileprivate var secondsAndNanoseconds: (Int64, Int32) {
        let (seconds, attoseconds) = components
        return (seconds, Int32(attoseconds / 1_000_000_000))
    }
}
