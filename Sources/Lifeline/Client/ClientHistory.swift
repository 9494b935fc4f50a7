internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The last steps of a client's connection, and the subscribers that wait for the next one.
final class ClientHistory: Sendable {
    /// Enough for some minutes of trouble, and little to keep.
    static let capacity = 100

    fileprivate struct Entry {
        let step: PublishedStep
        let messagesBefore: Int
    }

    private struct State {
        /// The last steps. Their numbers have no gaps.
        var entries: [Entry] = []
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0

        var firstNumber: UInt64 { entries.first?.number ?? 1 }
        /// 0 when there is none.
        var newestNumber: UInt64 { entries.last?.number ?? 0 }

        mutating func park(_ waiter: Waiter, _ id: UInt64, until number: UInt64) -> Bool {
            guard number > newestNumber else { return false }
            waiters[id] = waiter
            return true
        }
    }

    /// The subscribers to wake, once no lock is held.
    struct Wakeup {
        fileprivate var waiters: [Waiter] = []

        func run() {
            for waiter in waiters { waiter.resume() }
        }
    }

    private let state = NIOLockedValueBox(State())

    // MARK: The keeper's side

    /// Publishes a step.
    func append(_ step: PublishedStep, messagesBefore: Int) -> Wakeup {
        state.withLockedValue { state in
            if state.entries.count == ClientHistory.capacity { state.entries.removeFirst() }
            state.entries.append(Entry(step: step, messagesBefore: messagesBefore))
            defer { state.waiters = [:] }
            return Wakeup(waiters: Array(state.waiters.values))
        }
    }

    // MARK: The subscribers' side

    /// The number of the newest step; the number of the first step while there is none.
    var newestNumber: UInt64 { state.withLockedValue { max($0.newestNumber, 1) } }

    /// The steps that are kept, the oldest first.
    var events: [ClientEvent] {
        state.withLockedValue { state in state.entries.map { $0.event(missedCount: 0) } }
    }

    enum Lookup {
        case event(ClientEvent)
        case notYet
        /// The client made its last step before this number.
        case end
    }

    /// The step of this number; if it is not kept any more, the oldest one that is.
    func event(at number: UInt64) -> Lookup {
        state.withLockedValue { state in
            let first = max(number, state.firstNumber)
            guard first <= state.newestNumber else {
                return state.entries.last?.step.transition.to == .closed ? .end : .notYet
            }
            let index = Int(first - state.firstNumber)
            return .event(state.entries[index].event(missedCount: Int(first - number)))
        }
    }

    /// Waits until the step of this number was made; false when the task is cancelled first.
    nonisolated(nonsending) func wait(for number: UInt64) async -> Bool {
        let id = makeWaiterID()
        await state.wait {
            $0.park($1, id, until: number)
        } withdraw: {
            $0.waiters.removeValue(forKey: id)
        }
        return !Task.isCancelled
    }

    /// Waits until the step of this number was published, whether or not the task is cancelled.
    nonisolated(nonsending) func waitUninterrupted(for number: UInt64) async {
        let id = makeWaiterID()
        await state.waitUninterrupted { $0.park($1, id, until: number) }
    }

    private func makeWaiterID() -> UInt64 {
        state.withLockedValue { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
    }
}

extension ClientHistory.Entry {
    fileprivate var number: UInt64 { step.transition.number }

    fileprivate func event(missedCount: Int) -> ClientEvent {
        ClientEvent(
            transition: step.transition,
            acceptedMessageCount: step.counts?.accepted,
            undeliveredMessageCount: step.counts?.undelivered,
            missedCount: missedCount,
            messagesBefore: messagesBefore
        )
    }
}
