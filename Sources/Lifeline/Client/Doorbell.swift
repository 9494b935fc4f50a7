internal import NIOConcurrencyHelpers

/// Wakes the one task that waits, for whatever reason it was rung. Rung while nobody waits, it lets the next one through.
final class Doorbell: Sendable {
    private struct State {
        var isRung = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = NIOLockedValueBox(State())

    func ring() {
        state.withLockedValue { state in
            if state.waiter == nil { state.isRung = true }
            return state.waiter.take()
        }?.resume()
    }

    /// Waits until it is rung, or the task is cancelled. For one task at a time.
    func wait() async {
        await withTaskCancellationHandler {
            // A cancellation before the waiter is there ran its handler in vain; one after it finds the waiter.
            await wait(unless: { Task.isCancelled })
        } onCancel: {
            state.withLockedValue { $0.waiter.take() }?.resume()
        }
    }

    /// Waits until it is rung, whether or not the task is cancelled.
    func waitUninterrupted() async {
        await wait(unless: { false })
    }

    private func wait(unless isOver: () -> Bool) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let waits = state.withLockedValue { state in
                if state.isRung || isOver() {
                    state.isRung = false
                    return false
                }
                state.waiter = continuation
                return true
            }
            if !waits { continuation.resume() }
        }
    }
}
