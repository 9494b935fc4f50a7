internal import Glibc
package import LifelineCore

/// The clock of a client.
package protocol ClientClock: Sendable {
    /// The present time, on a clock that also runs while the machine sleeps.
    var now: MonotonicTime { get }

    /// The date, in milliseconds since 1970. Its clock may be set.
    var date: Int64 { get }

    /// Returns at `deadline` or soon after.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    func sleep(until deadline: MonotonicTime) async throws
}

extension ClientClock {
    /// Runs `body` until it returns, `deadline` has passed, or the task is cancelled. The last two cancel it.
    package func race(until deadline: MonotonicTime?, _ body: @escaping @Sendable () async -> Void) async {
        await withTaskGroup { group in
            group.addTask { await body() }
            if let deadline { group.addTask { try? await self.sleep(until: deadline) } }
            await group.next()
            group.cancelAll()
        }
    }
}

/// `CLOCK_BOOTTIME`, which also runs while the machine sleeps.
///
/// `ContinuousClock` is the same clock on Linux: its sleeps end at once when the machine wakes up, if their time has
/// come meanwhile.
package struct BootTimeClock: ClientClock {
    package init() {}

    package var now: MonotonicTime { .now() }

    package var date: Int64 {
        var time = timespec()
        // This cannot fail: the clock always exists, and the address is valid.
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    package func sleep(until deadline: MonotonicTime) async throws {
        try await Task.sleep(until: .now + (deadline - now), clock: .continuous)
    }
}
