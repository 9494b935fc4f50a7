package import LifelineCore

/// A time by both clocks: the monotonic one, and the date, which continues over a restart of the machine but may be
/// set.
package struct StoreTime: Sendable {
    package let now: MonotonicTime
    /// Milliseconds since 1970.
    package let date: Int64

    package init(now: MonotonicTime, date: Int64) { (self.now, self.date) = (now, date) }

    /// Returns the deadline of a message that had this much time left at a date. If the clock has been set back since
    /// then, the message has all of that time again.
    func deadline(_ milliseconds: UInt64, after date: Int64) -> MonotonicTime {
        let left = Int64(clamping: milliseconds)
        return now + .milliseconds(left - min(max(self.date &- date, 0), left))
    }
}
