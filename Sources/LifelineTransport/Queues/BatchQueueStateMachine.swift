package import LifelineCore

/// The decisions of a queue of batches with one producer and one consumer. Knows no locks and no tasks.
package struct BatchQueueStateMachine<Batch: Sendable> {
    private enum State {
        /// The producer may add. Can go to: ended.
        case open
        /// The producer has finished; what is queued is still delivered, then the end is. Can go to: nothing.
        case ended(ConnectionError?)
    }

    private struct Place: Sendable {
        let batch: Batch
        let cost: Int
    }

    private let marks: WaterMarks
    private var state = State.open
    /// Idle connections keep little memory.
    private var places = FIFO<Place>(keptCapacity: 16)
    /// What the batches cost that are queued.
    package private(set) var cost = 0
    /// The producer is to wait for `resumeReading`.
    package private(set) var isPaused = false
    /// The consumer that waits, if one does.
    private var waitingConsumer: UInt64?
    private var lastConsumer: UInt64 = 0

    package init(marks: WaterMarks) {
        self.marks = marks
    }

    /// What the producer does after a batch.
    package struct ReceivedAction: Equatable {
        /// Whether the consumer waits for it.
        package var wakeConsumer: Bool
        /// Whether to read on.
        package var demand: ReadDemand
    }

    /// The producer received a batch; nil: one of nothing.
    package mutating func received(_ batch: Batch?, cost: Int) -> ReceivedAction {
        guard case .open = state else { return ReceivedAction(wakeConsumer: false, demand: .refused) }
        if let batch {
            places.append(Place(batch: batch, cost: cost))
            self.cost += cost
        }
        if self.cost >= marks.high { isPaused = true }
        return ReceivedAction(wakeConsumer: batch != nil && takeWaiter(), demand: isPaused ? .pause : .more)
    }

    /// The producer finished. Tells whether the consumer waits for that.
    package mutating func finished(throwing error: ConnectionError?) -> Bool {
        guard case .open = state else { return false }
        state = .ended(error)
        return takeWaiter()
    }

    /// The owner throws away what is queued. Returns it.
    package mutating func discarded() -> [Batch] {
        cost = 0
        return places.removeAll().map(\.batch)
    }

    /// What a consumer that asked for a batch gets.
    package struct Delivery {
        package var batch: Batch
        /// Whether the producer, which was paused, goes on.
        package var resumesReading: Bool
    }

    /// The consumer asked for the next batch. Nil when there is none: `consumerWillWait(_:)` next.
    package mutating func batchRequested() -> Delivery? {
        guard let (batch, batchCost) = places.popFirst().map({ ($0.batch, $0.cost) }) else { return nil }
        cost -= batchCost
        guard isPaused, cost <= marks.low else { return Delivery(batch: batch, resumesReading: false) }
        isPaused = false
        return Delivery(batch: batch, resumesReading: true)
    }

    /// What a consumer that wants to wait does.
    package enum WaitAction {
        /// Wait until woken.
        case wait
        /// Ask again: something came in the meantime.
        case askAgain
        /// Nothing comes any more: the end, or why it came.
        case end(ConnectionError?)
        /// Fail: another consumer waits already.
        case refuse
    }

    /// Tells two consumers apart, so that cancelling one does not end the other's wait.
    package mutating func makeConsumerID() -> UInt64 {
        lastConsumer += 1
        return lastConsumer
    }

    /// A consumer is about to suspend.
    package mutating func consumerWillWait(_ id: UInt64) -> WaitAction {
        if waitingConsumer != nil { return .refuse }
        if !places.isEmpty { return .askAgain }
        if case .ended(let error) = state { return .end(error) }
        waitingConsumer = id
        return .wait
    }

    /// A consumer was cancelled. Tells whether it still waited.
    package mutating func consumerCancelled(_ id: UInt64) -> Bool {
        waitingConsumer == id && takeWaiter()
    }

    private mutating func takeWaiter() -> Bool {
        waitingConsumer.take() != nil
    }
}
