package import LifelineCore
internal import NIOConcurrencyHelpers

/// Where a consumer keeps the batch that it takes elements out of one by one. Several tasks may take turns at consuming, so that
/// it is filled, and looked at before one of them waits, under the queue's lock.
package protocol BatchRest<Element>: AnyObject, Sendable {
    associatedtype Element: Sendable
    var isEmpty: Bool { get }
    /// Keeps a batch. Called while it is empty.
    func put(_ batch: [Element])
    /// All that is left, in order.
    func takeAll() -> [Element]
}

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

    /// Sees to it that the rest has an element, and tells whether it has; false at the end. Suspends only when there is none.
    ///
    /// - Parameter resumeReading: called when the producer may go on.
    /// - Throws: what the queue was ended with; `CancellationError`, after which the queue can be used on;
    ///   `ConnectionError` `concurrentIteration` when another consumer waits.
    package nonisolated(nonsending) func fill(
        _ rest: any BatchRest<Element>,
        resumeReading: () -> Void
    ) async throws -> Bool {
        while true {
            try Task.checkCancellation()
            let action = state.withLockedValue { state in
                if !rest.isEmpty { return StateMachine.NextAction.deliver([], resumeReading: false) }
                let action = state.machine.nextRequested()
                if case .deliver(let elements, _) = action { rest.put(elements) }
                return action
            }
            switch action {
            case .deliver(_, let resumes):
                if resumes { resumeReading() }
                return true
            case .end(nil): return false
            case .end(let error?): throw error
            case .wait: try await waitForBatch(rest)
            }
        }
    }

    /// What is left of a batch, or the next one, or nil at the end. Like `fill(_:resumeReading:)` otherwise.
    package nonisolated(nonsending) func nextBatch(
        after rest: (any BatchRest<Element>)? = nil,
        resumeReading: () -> Void
    ) async throws -> [Element]? {
        while true {
            try Task.checkCancellation()
            switch nextAction(after: rest) {
            case .deliver(let elements, let resumes):
                if resumes { resumeReading() }
                return elements
            case .end(nil): return nil
            case .end(let error?): throw error
            case .wait: try await waitForBatch(rest)
            }
        }
    }

    /// Like `nextBatch(after:resumeReading:)`, but empty instead of waiting, and at the end.
    package func takeBatch(after rest: any BatchRest<Element>, resumeReading: () -> Void) -> [Element] {
        guard case .deliver(let elements, let resumes) = nextAction(after: rest) else { return [] }
        if resumes { resumeReading() }
        return elements
    }

    private func nextAction(after rest: (any BatchRest<Element>)?) -> StateMachine.NextAction {
        state.withLockedValue { state in
            if let rest, !rest.isEmpty {
                let left = rest.takeAll()
                // Another consumer may have been quicker.
                if !left.isEmpty { return .deliver(left, resumeReading: false) }
            }
            return state.machine.nextRequested()
        }
    }

    private nonisolated(nonsending) func waitForBatch(_ rest: (any BatchRest<Element>)?) async throws {
        let id = state.withLockedValue { $0.machine.makeConsumerID() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    // A cancellation before this line ran its handler in vain; one after it finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if rest?.isEmpty == false { return .success(()) }
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
