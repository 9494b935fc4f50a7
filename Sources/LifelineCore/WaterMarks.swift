/// The two marks between which a queue lets its producer run and makes it wait.
public struct WaterMarks: Sendable, Hashable {
    /// The producer may go on when the queue has come down to this.
    public let low: Int
    /// The producer has to wait when the queue has come up to this.
    public let high: Int

    /// Makes a pair of marks, in bytes. `high` counts as at least 1, so that one item always fits an empty queue, and
    /// `low` as at least 0 and below `high`.
    public init(low: Int, high: Int) {
        self.high = max(high, 1)
        self.low = min(max(low, 0), self.high - 1)
    }
}
