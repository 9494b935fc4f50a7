package import LifelineCore
internal import NIOConcurrencyHelpers

/// Opens once, with a value, and then resumes the waiting tasks.
package final class Latch<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiters: [UInt64: Waiter] = [:]
        var calls: [@Sendable (Value) -> Void] = []
        var lastID: UInt64 = 0

        mutating func park(_ waiter: Waiter, _ id: UInt64) -> Bool {
            if value == nil { waiters[id] = waiter }
            return value == nil
        }

        mutating func makeID() -> UInt64 {
            lastID += 1
            return lastID
        }
    }

    // A pthread mutex, so that ThreadSanitizer sees its ordering. It does not see that of the standard library's Mutex,
    // and reports every use of one as a race.
    private let state = NIOLockedValueBox(State())

    package init() {}

    /// Opens the latch. Only the first value counts; returns whether it is this one.
    @discardableResult
    package func open(with value: Value) -> Bool {
        let opened = state.withLockedValue { state -> State? in
            if state.value != nil { return nil }
            state.value = value
            defer { (state.waiters, state.calls) = ([:], []) }
            return state
        }
        guard let opened else { return false }
        for waiter in opened.waiters.values { waiter.resume() }
        for call in opened.calls { call(value) }
        return true
    }

    /// Calls `call` where the latch is opened, or here where it is open.
    package func whenOpened(_ call: @escaping @Sendable (Value) -> Void) {
        let value = state.withLockedValue { state in
            if state.value == nil { state.calls.append(call) }
            return state.value
        }
        if let value { call(value) }
    }

    /// The value, when the latch is open.
    package var value: Value? { state.withLockedValue { $0.value } }

    /// Waits until the latch is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled first.
    package func wait() async throws -> Value {
        let id = state.withLockedValue { $0.makeID() }
        while true {
            if let value { return value }
            try Task.checkCancellation()
            await state.wait {
                $0.park($1, id)
            } withdraw: {
                $0.waiters.removeValue(forKey: id)
            }
        }
    }

    /// Waits until the latch is open, whether or not the task is cancelled.
    package func waitUninterrupted() async -> Value {
        while true {
            if let value { return value }
            await state.waitUninterrupted { $0.park($1, $0.makeID()) }
        }
    }

    /// Waits until the latch is open, `deadline` has passed, or the task is cancelled.
    package func wait(until deadline: MonotonicTime, by clock: any ClientClock) async {
        await clock.race(until: deadline) { _ = try? await self.wait() }
    }
}
