/// Notices that the machine, or the process, was suspended: a frequent timer then fires much too late.
///
/// A check every half interval finds every sleep of at least an interval.
package struct SleepWatch: Sendable {
    private let period: Duration
    package private(set) var deadline: MonotonicTime

    package init(interval: Duration, now: MonotonicTime) {
        period = max(interval / 2, .milliseconds(1))
        deadline = now + period
    }

    /// Handles the timer. Returns true if it fired so late that there was a sleep.
    package mutating func timerFired(now: MonotonicTime) -> Bool {
        guard now >= deadline else { return false }
        let hasSlept = now - deadline >= period
        deadline = now + period
        return hasSlept
    }
}
