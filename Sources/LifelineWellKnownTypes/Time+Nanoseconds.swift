internal import LifelineMessages

/// A message with a time in seconds and nanoseconds, which a peer can fill with any numbers.
protocol TimeMessage: Message {
    var seconds: Int64 { get }
    var nanos: Int32 { get }
}

extension Google_Protobuf_Duration: TimeMessage {}
extension Google_Protobuf_Timestamp: TimeMessage {}

extension TimeMessage {
    /// The time in nanoseconds. `Int128` has room for all sums of times.
    var nanoseconds: Int128 { Int128(seconds) * 1_000_000_000 + Int128(nanos) }
}

extension Google_Protobuf_Duration {
    /// Makes a span. Seconds and nanoseconds get the same sign, as duration.proto demands. Values that do not fit are
    /// clamped.
    init(nanoseconds: Int128) {
        let (seconds, nanos) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let fit = Int64(clamping: seconds)
        let edge: Int32 = fit < 0 ? -999_999_999 : 999_999_999
        self.init(seconds: fit, nanos: Int128(fit) == seconds ? Int32(nanos) : edge)
    }
}

extension Google_Protobuf_Timestamp {
    /// Makes a moment. Nanoseconds count forward, also before 1970, as timestamp.proto demands. Values that do not fit
    /// are clamped.
    init(nanoseconds: Int128) {
        var (seconds, nanos) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        if nanos < 0 { (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000) }
        let fit = Int64(clamping: seconds)
        let edge: Int32 = fit < 0 ? 0 : 999_999_999
        self.init(seconds: fit, nanos: Int128(fit) == seconds ? Int32(nanos) : edge)
    }
}

extension Swift.Duration {
    /// The nanoseconds, without fractions.
    var wholeNanoseconds: Int128 { attoseconds / 1_000_000_000 }
}
