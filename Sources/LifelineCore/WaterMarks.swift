/// The two sizes of a queue at which its producer has to wait and may resume.
public struct WaterMarks: Sendable, Hashable {
    /// The producer may resume when the queue has fallen to this size.
    public let low: Int
    /// The producer has to wait when the queue has reached this size.
    public let high: Int

    /// Makes a pair of marks, in bytes. `high` counts as at least 1, so that one item always fits an empty queue, and
    /// `low` as at least 0 and below `high`.
    public init(low: Int, high: Int) {
        self.high = max(high, 1)
        self.low = min(max(low, 0), self.high - 1)
    }
}
