/// Counts how long calls took, in constant memory.
///
/// Each power of two of nanoseconds has 32 buckets of equal width, so a percentile has an error of at most 3 %.
struct LatencyHistogram {
    private static let bucketsPerPower = 32

    private var counts = [Int](repeating: 0, count: 64 * bucketsPerPower)
    private(set) var count = 0
    private(set) var longest = Duration.zero

    mutating func add(_ latency: Duration) {
        counts[Self.bucket(of: Self.nanoseconds(latency))] += 1
        count += 1
        longest = max(longest, latency)
    }

    /// Returns the time within which this share (0 to 1) of the calls was answered; zero without calls.
    func percentile(_ share: Double) -> Duration {
        let rank = max(1, Int((Double(count) * share).rounded(.up)))
        var sum = 0
        for (bucket, count) in counts.enumerated() {
            sum += count
            if sum >= rank { return min(.nanoseconds(Self.upperBound(of: bucket)), longest) }
        }
        return .zero
    }

    private static func nanoseconds(_ latency: Duration) -> UInt64 {
        let (seconds, attoseconds) = latency.components
        return UInt64(max(0, seconds)) &* 1_000_000_000 &+ UInt64(max(0, attoseconds) / 1_000_000_000)
    }

    /// Numbers below 32 have a bucket each; for others, the five bits after the first one choose the bucket.
    private static func bucket(of value: UInt64) -> Int {
        let power = 63 - (value | 1).leadingZeroBitCount
        if power < 5 { return Int(value) }
        return (power - 4) * bucketsPerPower + Int(value >> UInt64(power - 5)) - bucketsPerPower
    }

    /// Returns the highest number in a bucket.
    private static func upperBound(of bucket: Int) -> Int {
        let power = bucket / bucketsPerPower + 4
        if power < 5 { return bucket }
        return (bucket % bucketsPerPower + bucketsPerPower + 1) << (power - 5) - 1
    }
}
