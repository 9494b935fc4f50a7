internal import LifelineCore
internal import LifelineTransport

extension Latch {
    /// Waits until the latch is open, `deadline` has come, or the task is cancelled.
    func wait(until deadline: MonotonicTime, by clock: any ClientClock) async {
        await withTaskGroup { group in
            group.addTask { _ = try? await self.wait() }
            group.addTask { try? await clock.sleep(until: deadline) }
            await group.next()
            group.cancelAll()
        }
    }
}
