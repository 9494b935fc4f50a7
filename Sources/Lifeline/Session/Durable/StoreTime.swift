package import LifelineCore

/// A time by both clocks: the one that only goes forward, and the one that goes on over a restart of the machine, but may
/// be set.
package struct StoreTime: Sendable {
    package let now: MonotonicTime
    /// Milliseconds since 1970.
    package let date: Int64

    package init(now: MonotonicTime, date: Int64) { (self.now, self.date) = (now, date) }

    /// The deadline of a message that had so much time left at a date. Where the clock has been put back since then,
    /// the message has all of that again.
    func deadline(_ milliseconds: UInt64, after date: Int64) -> MonotonicTime {
        let left = Int64(clamping: milliseconds)
        return now + .milliseconds(left - min(max(self.date &- date, 0), left))
    }
}
