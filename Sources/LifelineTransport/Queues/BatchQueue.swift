package import LifelineCore
internal import NIOConcurrencyHelpers

/// Carries batches from one producer, which never waits, to one consumer, which waits when there is nothing.
///
/// Bounded by the producer's obedience: past the high-water mark it is told to pause, and told to go on when the
/// consumer has brought the queue down to the low one.
package final class BatchQueue<Element: Sendable>: Sendable {
    private struct State {
        var machine: StateMachine
        var waiter: CheckedContinuation<Void, any Error>?
    }

    private let state: NIOLockedValueBox<State>

    package init(marks: WaterMarks) {
        state = NIOLockedValueBox(State(machine: StateMachine(marks: marks)))
    }

    // MARK: The producer's side

    /// Adds a batch, whose cost counts until the consumer takes it. Tells whether to go on.
    package func receive(_ elements: [Element], cost: Int) -> ReadDemand {
        let (waiter, demand) = state.withLockedValue { state in
            let action = state.machine.received(elements, cost: cost)
            return (action.wakeConsumer ? state.waiter.take() : nil, action.demand)
        }
        waiter?.resume()
        return demand
    }

    /// Whether the producer was told to pause, and not yet to go on.
    package var isPaused: Bool { state.withLockedValue { $0.machine.isPaused } }

    /// Ends the queue after what it holds. Only the first call counts.
    package func finish(throwing error: ConnectionError?) {
        state.withLockedValue { $0.machine.finished(throwing: error) ? $0.waiter.take() : nil }?.resume()
    }

    /// Ends the queue at once. Returns what nobody has taken.
    package func finishDiscarding() -> [Element] {
        finish(throwing: nil)
        return state.withLockedValue { $0.machine.discarded() }
    }

    // MARK: The consumer's side

    /// The next element, or nil at the end. Suspends only when there is none.
    ///
    /// - Parameter resumeReading: called when the producer may go on.
    /// - Throws: what the queue was ended with; `CancellationError`, after which the queue can be used on;
    ///   `ConnectionError` `concurrentIteration` when another consumer waits.
    package nonisolated(nonsending) func next(resumeReading: () -> Void) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            switch state.withLockedValue({ $0.machine.nextRequested() }) {
            case .deliver(let element, let resumes):
                if resumes { resumeReading() }
                return element
            case .end(nil): return nil
            case .end(let error?): throw error
            case .wait: try await waitForBatch()
            }
        }
    }

    /// The rest of the batch begun, or the next batch, or nil at the end. Like `next(resumeReading:)` otherwise.
    package nonisolated(nonsending) func nextBatch(resumeReading: () -> Void) async throws -> [Element]? {
        while true {
            try Task.checkCancellation()
            switch state.withLockedValue({ $0.machine.nextBatchRequested() }) {
            case .deliver(let elements, let resumes):
                if resumes { resumeReading() }
                return elements
            case .end(nil): return nil
            case .end(let error?): throw error
            case .wait: try await waitForBatch()
            }
        }
    }

    /// Like `nextBatch(resumeReading:)`, but empty instead of waiting, and at the end.
    package func takeBatch(resumeReading: () -> Void) -> [Element] {
        guard case .deliver(let elements, let resumes) = state.withLockedValue({ $0.machine.nextBatchRequested() })
        else { return [] }
        if resumes { resumeReading() }
        return elements
    }

    private nonisolated(nonsending) func waitForBatch() async throws {
        let id = state.withLockedValue { $0.machine.makeConsumerID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    // A cancellation before this line ran its handler in vain; one after it finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    switch state.machine.consumerWillWait(id) {
                    case .wait:
                        state.waiter = continuation
                        return nil
                    case .askAgain: return .success(())
                    case .refuse: return .failure(ConnectionError.concurrentIteration)
                    }
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            state.withLockedValue { $0.machine.consumerCancelled(id) ? $0.waiter.take() : nil }?
                .resume(throwing: CancellationError())
        }
    }
}

extension ConnectionError {
    fileprivate static var concurrentIteration: ConnectionError {
        ConnectionError(
            code: .concurrentIteration,
            message:
                "Another task is waiting for a message of this connection. Let one task iterate, and hand on from it."
        )
    }
}
