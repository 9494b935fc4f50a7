package import LifelineCore

extension MonotonicTime? {
    /// Returns the earlier of two optional deadlines. It is called after every event, so it makes no array.
    package static func earliest(_ first: MonotonicTime?, _ second: MonotonicTime?) -> MonotonicTime? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }
}

extension MonotonicTime {
    /// Returns a request's remaining time for its frame: whole milliseconds, at least 1, because 0 means no limit.
    package func timeoutMilliseconds(now: MonotonicTime) -> UInt64 {
        guard self > now else { return 1 }
        let (rest, overflow) = self.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
        let nanoseconds = UInt64(overflow ? .max : rest)
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}
