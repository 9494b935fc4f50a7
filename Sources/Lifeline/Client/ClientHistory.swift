internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The last steps of a client's connection, and the subscribers that wait for the next one.
///
/// A step that ends a connection may be held back until it is known what was lost with it; the steps after it wait too.
final class ClientHistory: Sendable {
    /// Enough for some minutes of trouble, and little to keep.
    static let capacity = 100

    fileprivate struct Entry {
        let transition: ConnectionTransition
        var fate: MessageCounts?
        var messagesBefore: Int
        var isHeld: Bool
    }

    private struct State {
        /// The last ones, whose numbers have no gaps.
        var entries: [Entry] = []
        /// The number of the last step that may be seen.
        var visibleNumber: UInt64 = 0
        var waiters: [UInt64: Waiter] = [:]
        var lastWaiter: UInt64 = 0

        var firstNumber: UInt64 { entries.first?.transition.number ?? 1 }

        /// Shows all steps up to the first that is held. Returns who waited for that.
        mutating func show() -> Wakeup {
            let shown = entries.prefix { !$0.isHeld }.last?.transition.number ?? firstNumber - 1
            guard shown > visibleNumber else { return Wakeup() }
            visibleNumber = shown
            defer { waiters = [:] }
            return Wakeup(waiters: Array(waiters.values))
        }

        mutating func park(_ waiter: Waiter, _ id: UInt64, until number: UInt64) -> Bool {
            guard number > visibleNumber else { return false }
            waiters[id] = waiter
            return true
        }
    }

    /// Who is to be woken, once no lock is held.
    struct Wakeup {
        fileprivate var waiters: [Waiter] = []

        func run() {
            for waiter in waiters { waiter.resume() }
        }
    }

    private let state = NIOLockedValueBox(State())

    // MARK: The driver's side

    /// A step was made. With `isHeld`, `complete` shows it.
    func append(
        _ transition: ConnectionTransition,
        _ fate: MessageCounts?,
        messagesBefore: Int,
        isHeld: Bool
    ) -> Wakeup {
        state.withLockedValue { state in
            if state.entries.count == ClientHistory.capacity { state.entries.removeFirst() }
            state.entries.append(
                Entry(
                    transition: transition,
                    fate: fate,
                    messagesBefore: messagesBefore,
                    isHeld: isHeld
                )
            )
            return state.show()
        }
    }

    /// What was lost with a step that was held is known.
    func complete(_ number: UInt64, _ fate: MessageCounts, messagesBefore: Int) -> Wakeup {
        state.withLockedValue { state in
            for index in state.entries.indices where state.entries[index].transition.number >= number {
                // What followed meanwhile came after the same messages.
                state.entries[index].messagesBefore = messagesBefore
                guard state.entries[index].transition.number == number else { continue }
                state.entries[index].fate = fate
                state.entries[index].isHeld = false
            }
            return state.show()
        }
    }

    // MARK: The subscribers' side

    /// The number of the newest step that may be seen; that of the first one before there is any.
    var newestNumber: UInt64 { state.withLockedValue { max($0.visibleNumber, 1) } }

    /// The steps that are kept and may be seen, the oldest first.
    var events: [ClientEvent] {
        state.withLockedValue { state in
            state.entries.filter { $0.transition.number <= state.visibleNumber }.map { $0.event(missedCount: 0) }
        }
    }

    enum Lookup {
        case event(ClientEvent)
        case notYet
        /// There was a last step, and it is before.
        case end
    }

    /// The step of this number; if it is not kept any more, the oldest one that is.
    func event(at number: UInt64) -> Lookup {
        state.withLockedValue { state in
            let first = max(number, state.firstNumber)
            guard first <= state.visibleNumber else {
                let newest = state.entries.last { $0.transition.number == state.visibleNumber }
                return newest?.transition.to == .closed ? .end : .notYet
            }
            let index = Int(first - state.firstNumber)
            return .event(state.entries[index].event(missedCount: Int(first - number)))
        }
    }

    /// Waits until the step of this number may be seen; false when the task is cancelled first.
    nonisolated(nonsending) func wait(for number: UInt64) async -> Bool {
        let id = makeWaiterID()
        await state.wait {
            $0.park($1, id, until: number)
        } withdraw: {
            $0.waiters.removeValue(forKey: id)
        }
        return !Task.isCancelled
    }

    /// Waits until the step of this number may be seen, whether or not the task is cancelled.
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
    fileprivate func event(missedCount: Int) -> ClientEvent {
        ClientEvent(
            transition: transition,
            acceptedMessageCount: fate?.accepted,
            undeliveredMessageCount: fate?.undelivered,
            missedCount: missedCount,
            messagesBefore: messagesBefore
        )
    }
}

/// What became of the messages of a connection that ended.
struct MessageCounts {
    /// Those that it had accepted.
    let accepted: Int
    /// Those of them that did not reach the peer's system; nil where that is not known.
    let undelivered: Int?

    init(_ report: ClosureReport) {
        accepted = report.acceptedFrameCount
        undelivered = report.unacknowledgedFrameCount
    }
}
