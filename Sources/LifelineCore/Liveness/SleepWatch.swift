/// Notices that the machine, or the process, stood still: a timer that looks often fires much too late then.
///
/// Looking every half interval finds every sleep of an interval and more.
package struct SleepWatch: Sendable {
    private let period: Duration
    package private(set) var deadline: MonotonicTime

    package init(interval: Duration, now: MonotonicTime) {
        period = max(interval / 2, .milliseconds(1))
        deadline = now + period
    }

    /// The timer fired. True when that is so late that there was a sleep.
    package mutating func timerFired(now: MonotonicTime) -> Bool {
        guard now >= deadline else { return false }
        let hasSlept = now - deadline >= period
        deadline = now + period
        return hasSlept
    }
}
