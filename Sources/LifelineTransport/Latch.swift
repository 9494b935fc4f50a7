internal import NIOConcurrencyHelpers

/// Opens once, with a value; whoever waits goes on then.
package final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var uninterruptedWaiters: [CheckedContinuation<Void, Never>] = []
        var nextID: UInt64 = 0
    }

    // Here and in the queues: a pthread mutex, so that ThreadSanitizer sees the order it makes. It does not see that of
    // the standard library's Mutex, and calls every use of one a race.
    private let state = NIOLockedValueBox(State())

    package init() {}

    /// Opens the latch. The first value counts; true when it is this one.
    @discardableResult
    package func open(with value: Value) -> Bool {
        let isFirst = state.withLockedValue { state in
            if state.value != nil { return false }
            state.value = value
            return true
        }
        guard isFirst else { return false }
        // Nobody is added once there is a value.
        let (waiters, uninterrupted) = state.withLockedValue { state in
            defer { (state.waiters, state.uninterruptedWaiters) = ([:], []) }
            return (state.waiters, state.uninterruptedWaiters)
        }
        for waiter in waiters.values { waiter.resume() }
        for waiter in uninterrupted { waiter.resume() }
        return true
    }

    /// The value, when the latch is open.
    package var value: Value? { state.withLockedValue { $0.value } }

    /// Waits until the latch is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait() async throws -> Value {
        while true {
            if let value { return value }
            try await waitForOpening()
        }
    }

    /// Waits until the latch is open, whether or not the task is cancelled.
    package func waitUninterrupted() async -> Value {
        while true {
            if let value { return value }
            await withCheckedContinuation { continuation in
                let isOpen = state.withLockedValue { state in
                    if state.value == nil { state.uninterruptedWaiters.append(continuation) }
                    return state.value != nil
                }
                if isOpen { continuation.resume() }
            }
        }
    }

    private func waitForOpening() async throws {
        let id = state.withLockedValue { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    if state.value != nil { return .success(()) }
                    // A cancellation before this line ran its handler in vain; one after it finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLockedValue { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }
}
