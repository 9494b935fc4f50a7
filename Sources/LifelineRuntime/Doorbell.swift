package import LifelineCore
internal import NIOConcurrencyHelpers

/// Wakes the one task that waits. If it is rung while no task waits, the next task does not wait.
package final class Doorbell: Sendable {
    private struct State {
        var isRung = false
        var waiter: Waiter?

        mutating func park(_ waiter: Waiter) -> Bool {
            if isRung {
                isRung = false
                return false
            }
            self.waiter = waiter
            return true
        }
    }

    private let state = NIOLockedValueBox(State())

    package init() {}

    package func ring() {
        state.withLockedValue { state in
            if state.waiter == nil { state.isRung = true }
            return state.waiter.take()
        }?.resume()
    }

    /// Waits until the bell is rung, or the task is cancelled. Only one task may wait at a time.
    package func wait() async {
        await state.wait {
            $0.park($1)
        } withdraw: {
            $0.waiter.take()
        }
    }

    /// Waits until the bell is rung, whether or not the task is cancelled.
    package func waitUninterrupted() async {
        await state.waitUninterrupted { $0.park($1) }
    }

    /// Calls `fire` each time that a deadline has passed, or the bell was rung, until the task is cancelled.
    ///
    /// - Parameter nextDeadline: returns the deadline to wait for, if there is one. Ring the bell when there is an
    ///   earlier one.
    package func runTimer(
        by clock: any ClientClock,
        nextDeadline: @Sendable () -> MonotonicTime?,
        fire: @Sendable () -> Void
    ) async {
        while !Task.isCancelled {
            await clock.race(until: nextDeadline()) { await self.wait() }
            fire()
        }
    }
}
