package import LifelineCore

extension MonotonicTime? {
    /// The earlier of two deadlines, of which there may be none. It is asked for after every event, and so makes no
    /// array.
    package static func earliest(_ first: MonotonicTime?, _ second: MonotonicTime?) -> MonotonicTime? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }
}

extension MonotonicTime {
    /// The time that a request has left, as frames say it: whole milliseconds, at least 1, as 0 stands for no limit.
    package func timeoutMilliseconds(now: MonotonicTime) -> UInt64 {
        guard self > now else { return 1 }
        let (rest, overflow) = self.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
        let nanoseconds = UInt64(overflow ? .max : rest)
        return nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
    }
}
