package import LifelineCore
package import NIOCore

/// One timer on an event loop, set by a clock that goes on while the machine sleeps.
package struct LoopTimer {
    /// The loop's clock stands still while the machine sleeps: a task of before comes that much later. So what counts
    /// is when it is due by the loop's clock.
    private var armed: (due: NIODeadline, task: Scheduled<Void>)?

    package init() {}

    /// Sees to it that `body` runs by `deadline`. A timer that is too early does no harm, and is cheaper than a new one
    /// for every event. Call it on the loop. `body` runs there, too, and must call `fired()`.
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

    /// The timer has run.
    package mutating func fired() {
        armed = nil
    }

    package mutating func cancel() {
        armed?.task.cancel()
        armed = nil
    }
}
