package import LifelineCore
package import NIOCore

/// A timer on an event loop, set with a clock that also runs while the machine sleeps.
package struct LoopTimer {
    /// The loop's clock stops while the machine sleeps, which delays a scheduled task by that time. So the due time is
    /// kept by the loop's clock.
    private var armed: (due: NIODeadline, task: Scheduled<Void>)?

    package init() {}

    /// Makes `body` run by `deadline`. A timer that fires too early does no harm, and costs less than a new one for
    /// every event. Call it on the loop. `body` also runs there, and must call `fired()`.
    package mutating func set(
        to deadline: MonotonicTime,
        now: MonotonicTime,
        on loop: any EventLoop,
        _ body: @escaping () -> Void
    ) {
        let due = loop.now + .nanoseconds(max(0, (deadline - now).saturatedNanoseconds))
        if let armed {
            // The two clocks are not read at the same moment.
            if armed.due <= due + .milliseconds(1) { return }
            armed.task.cancel()
        }
        armed = (due, loop.assumeIsolated().scheduleTask(deadline: due, body))
    }

    /// Notes that the timer has run.
    package mutating func fired() {
        armed = nil
    }

    package mutating func cancel() {
        armed?.task.cancel()
        armed = nil
    }
}
