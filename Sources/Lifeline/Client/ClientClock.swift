package import LifelineCore
internal import LifelineTransport

/// The time that a client goes by.
package protocol ClientClock: Sendable {
    /// Now, on a clock that also runs while the machine sleeps.
    var now: MonotonicTime { get }

    /// Returns at `deadline` or soon after.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    func sleep(until deadline: MonotonicTime) async throws
}

/// `CLOCK_BOOTTIME`, which runs on while the machine sleeps.
///
/// `ContinuousClock` is that clock on Linux, too: what it sleeps for is over at once when the machine wakes up, where a
/// clock that stands still meanwhile would go on as if nothing had been.
package struct BootTimeClock: ClientClock {
    package init() {}

    package var now: MonotonicTime { .now() }

    package func sleep(until deadline: MonotonicTime) async throws {
        try await Task.sleep(until: .now + (deadline - now), clock: .continuous)
    }
}
