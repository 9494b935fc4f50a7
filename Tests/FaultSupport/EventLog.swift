internal import Synchronization

/// The events of a program so far. One task at a time may wait for more.
final class EventLog: Sendable {
    private struct Waiter {
        let isInOrder: Bool
        let matches: @Sendable (FaultEvent) -> Bool
        let continuation: CheckedContinuation<FaultEvent?, Never>
    }

    private struct State {
        var events: [FaultEvent] = []
        /// The position up to which `next` has searched.
        var position = 0
        var hasEnded = false
        var waiter: Waiter?
    }

    private let state = Mutex(State())

    /// All events, from the first on.
    var events: [FaultEvent] { state.withLock { $0.events } }

    /// Whether no more will come.
    var isEnded: Bool { state.withLock { $0.hasEnded } }

    func append(_ event: FaultEvent) {
        let waiter = state.withLock { state -> Waiter? in
            state.events.append(event)
            guard let waiter = state.waiter else { return nil }
            if waiter.isInOrder { state.position = state.events.count }
            guard waiter.matches(event) else { return nil }
            state.waiter = nil
            return waiter
        }
        waiter?.continuation.resume(returning: event)
    }

    /// No more events come.
    func end() {
        stopWaiting { $0.hasEnded = true }
    }

    /// The next matching event after the one that was returned last; nil at a timeout or after the last event.
    func next(within time: Duration, where matches: @escaping @Sendable (FaultEvent) -> Bool) async -> FaultEvent? {
        await event(isInOrder: true, within: time, where: matches)
    }

    /// A matching event, past or future; nil at a timeout or after the last event.
    func any(within time: Duration, where matches: @escaping @Sendable (FaultEvent) -> Bool) async -> FaultEvent? {
        await event(isInOrder: false, within: time, where: matches)
    }

    private func event(
        isInOrder: Bool,
        within time: Duration,
        where matches: @escaping @Sendable (FaultEvent) -> Bool
    ) async -> FaultEvent? {
        let deadline = Task {
            try await Task.sleep(for: time)
            stopWaiting { _ in }
        }
        defer { deadline.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                wait(Waiter(isInOrder: isInOrder, matches: matches, continuation: continuation))
            }
        } onCancel: {
            stopWaiting { _ in }
        }
    }

    private func wait(_ waiter: Waiter) {
        let answer = state.withLock { state -> FaultEvent?? in
            precondition(state.waiter == nil, "Two tasks wait for events of one program.")
            let unseen = state.events[(waiter.isInOrder ? state.position : 0)...]
            if let index = unseen.firstIndex(where: waiter.matches) {
                if waiter.isInOrder { state.position = index + 1 }
                return .some(state.events[index])
            }
            if waiter.isInOrder { state.position = state.events.count }
            if state.hasEnded || Task.isCancelled { return .some(nil) }
            state.waiter = waiter
            return nil
        }
        if let answer { waiter.continuation.resume(returning: answer) }
    }

    private func stopWaiting(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.continuation.resume(returning: nil)
    }
}
