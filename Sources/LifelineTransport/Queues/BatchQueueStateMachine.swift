package import LifelineCore

/// The decisions of a queue of batches with one producer and one consumer. It uses no locks or tasks.
package struct BatchQueueStateMachine<Batch: Sendable> {
    private enum State {
        /// The producer may add. Can go to: ended.
        case open
        /// The producer has finished. Queued batches are still delivered, and then the end. Can go to: no other state.
        case ended(ConnectionError?)
    }

    private struct Place: Sendable {
        let batch: Batch
        let cost: Int
    }

    private let marks: WaterMarks
    private var state = State.open
    /// Has a small kept capacity, so that idle connections keep little memory.
    private var places = FIFO<Place>(keptCapacity: 16)
    /// The cost of the queued batches.
    package private(set) var cost = 0
    /// Whether the producer has to wait for `resumeReading`.
    package private(set) var isPaused = false
    /// The consumer that waits, if one does.
    private var waitingConsumer: UInt64?
    private var lastConsumer: UInt64 = 0

    package init(marks: WaterMarks) {
        self.marks = marks
    }

    /// The steps after a batch.
    package struct ReceivedAction: Equatable {
        /// Whether to wake the waiting consumer.
        package var wakeConsumer: Bool
        /// Whether the producer goes on.
        package var demand: ReadDemand
    }

    /// Notes a batch of the producer; nil for an empty one.
    package mutating func received(_ batch: Batch?, cost: Int) -> ReceivedAction {
        guard case .open = state else { return ReceivedAction(wakeConsumer: false, demand: .refused) }
        if let batch {
            places.append(Place(batch: batch, cost: cost))
            self.cost += cost
        }
        if self.cost >= marks.high { isPaused = true }
        return ReceivedAction(wakeConsumer: batch != nil && takeWaiter(), demand: isPaused ? .pause : .more)
    }

    /// Notes that the producer finished. Returns whether the consumer waits for that.
    package mutating func finished(throwing error: ConnectionError?) -> Bool {
        guard case .open = state else { return false }
        state = .ended(error)
        return takeWaiter()
    }

    /// Discards and returns the queued batches.
    package mutating func discarded() -> [Batch] {
        cost = 0
        return places.removeAll().map(\.batch)
    }

    /// A batch for a consumer.
    package struct Delivery {
        package var batch: Batch
        /// Whether the paused producer resumes.
        package var resumesReading: Bool
    }

    /// Returns the next batch for the consumer. Nil when there is none: then call `consumerWillWait(_:)`.
    package mutating func batchRequested() -> Delivery? {
        guard let (batch, batchCost) = places.popFirst().map({ ($0.batch, $0.cost) }) else { return nil }
        cost -= batchCost
        guard isPaused, cost <= marks.low else { return Delivery(batch: batch, resumesReading: false) }
        isPaused = false
        return Delivery(batch: batch, resumesReading: true)
    }

    /// The step of a consumer that wants to wait.
    package enum WaitAction {
        /// Wait until woken.
        case wait
        /// Ask again: a batch came in the meantime.
        case askAgain
        /// The queue has ended, with this error if there is one.
        case end(ConnectionError?)
        /// Fail: another consumer already waits.
        case refuse
    }

    /// Makes an id for a consumer, so that cancelling one does not end another's wait.
    package mutating func makeConsumerID() -> UInt64 {
        lastConsumer += 1
        return lastConsumer
    }

    /// Notes that a consumer is about to suspend.
    package mutating func consumerWillWait(_ id: UInt64) -> WaitAction {
        if waitingConsumer != nil { return .refuse }
        if !places.isEmpty { return .askAgain }
        if case .ended(let error) = state { return .end(error) }
        waitingConsumer = id
        return .wait
    }

    /// Notes that a consumer was cancelled. Returns whether it still waited.
    package mutating func consumerCancelled(_ id: UInt64) -> Bool {
        waitingConsumer == id && takeWaiter()
    }

    private mutating func takeWaiter() -> Bool {
        waitingConsumer.take() != nil
    }
}
