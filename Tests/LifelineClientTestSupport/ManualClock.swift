package import Lifeline
package import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// A clock that a test moves.
package final class ManualClock: ClientClock {
    private struct State {
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var sleepers: [UInt64: (deadline: MonotonicTime, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var lastID: UInt64 = 0
    }

    private let state = NIOLockedValueBox(State())

    package init() {}

    package var now: MonotonicTime { state.withLockedValue { $0.now } }
    package var date: Int64 { now.nanoseconds / 1_000_000 }

    /// The earliest time at which a sleeping task has to wake up.
    package var nextWakeUp: MonotonicTime? { state.withLockedValue { $0.sleepers.values.map(\.deadline).min() } }

    /// Moves time, and wakes the tasks whose time has come. A later sleep until a time that has passed returns at once.
    package func advance(to time: MonotonicTime) {
        let due = state.withLockedValue { state in
            state.now = max(state.now, time)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.continuation)
        }
        for sleeper in due { sleeper.resume() }
    }

    package func advance(by duration: Duration) {
        advance(to: now + duration)
    }

    package func sleep(until deadline: MonotonicTime) async throws {
        let id = state.withLockedValue { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.now >= deadline { return .success(()) }
                    state.sleepers[id] = (deadline, continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLockedValue { $0.sleepers.removeValue(forKey: id) }?.continuation
                .resume(throwing: CancellationError())
        }
    }
}

/// A network that a test switches on and off.
package final class ManualNetwork: ClientNetwork {
    package let isAvailableAtFirst: Bool
    private let changes = AsyncStream.makeStream(of: NetworkStatus.self)

    package init(isAvailableAtFirst: Bool = true) {
        self.isAvailableAtFirst = isAvailableAtFirst
    }

    package func change(to status: NetworkStatus) { changes.continuation.yield(status) }

    package func watch(_ report: @Sendable (NetworkStatus) -> Void) async {
        for await status in changes.stream { report(status) }
    }
}
