internal import LifelineCore
internal import NIOConcurrencyHelpers

/// The part of `BatchQueue` that does not depend on the element type. It is compiled once; generic code would look up
/// types for every batch, which took 4 of the 50 µs that a server spends on a read of 64 messages and their echoes.
package final class AnyBatchQueue: Sendable {
    // A consumer waits at most once for each read. A checked continuation costs twice as much; debug builds use it.
    #if DEBUG
    private typealias Waiter = CheckedContinuation<Bool, any Error>
    #else
    private typealias Waiter = UnsafeContinuation<Bool, any Error>
    #endif

    private struct State {
        var machine: BatchQueueStateMachine<AnyBatch>
        var waiter: Waiter?
        /// Whether anything was put into the consumers' rest since it was found empty. Only generic code can check the
        /// rest itself.
        var mayHaveRest = false
    }

    private let state: NIOLockedValueBox<State>

    init(marks: WaterMarks) {
        state = NIOLockedValueBox(State(machine: BatchQueueStateMachine(marks: marks)))
    }

    // MARK: The producer's side

    func receive(_ batch: AnyBatch?, cost: Int) -> ReadDemand {
        let (waiter, demand) = state.withLockedValue { state in
            let action = state.machine.received(batch, cost: cost)
            return (action.wakeConsumer ? state.waiter.take() : nil, action.demand)
        }
        waiter?.resume(returning: true)
        return demand
    }

    var isPaused: Bool { state.withLockedValue { $0.machine.isPaused } }

    var cost: Int { state.withLockedValue { $0.machine.cost } }

    func finish(throwing error: ConnectionError?) {
        state.withLockedValue { $0.machine.finished(throwing: error) ? $0.waiter.take() : nil }?
            .resume(returning: true)
    }

    func finishDiscarding() -> [AnyBatch] {
        finish(throwing: nil)
        return state.withLockedValue { $0.machine.discarded() }
    }

    // MARK: The consumer's side

    func fill(_ rest: any BatchRest, resumeReading: () -> Void) -> Bool {
        let (isFilled, resumes) = state.withLockedValue { state in
            if state.mayHaveRest {
                // Another consumer has left elements.
                guard rest.isEmpty else { return (true, false) }
                state.mayHaveRest = false
            }
            guard let delivery = state.machine.batchRequested() else { return (false, false) }
            rest.put(delivery.batch)
            state.mayHaveRest = true
            return (true, delivery.resumesReading)
        }
        if resumes { resumeReading() }
        return isFilled
    }

    func takeBatch(after rest: (any BatchRest)?, resumeReading: () -> Void) -> AnyBatch? {
        let delivery: BatchQueueStateMachine<AnyBatch>.Delivery? = state.withLockedValue { state in
            // Another consumer may have been faster.
            if state.mayHaveRest, let rest {
                state.mayHaveRest = false
                if let left = rest.takeAll() { return .init(batch: left, resumesReading: false) }
            }
            return state.machine.batchRequested()
        }
        if delivery?.resumesReading == true { resumeReading() }
        return delivery?.batch
    }

    /// Waits until there are elements. Returns false at the end.
    ///
    /// - Throws: the error that ended the queue; `CancellationError`, after which the queue can still be used;
    ///   `ConnectionError` `concurrentIteration` when another consumer waits.
    package nonisolated(nonsending) func wait(besides rest: (any BatchRest)?) async throws -> Bool {
        let id = state.withLockedValue { $0.machine.makeConsumerID() }
        return try await withTaskCancellationHandler {
            try await Self.wait { continuation in
                let result: Result<Bool, any Error>? = state.withLockedValue { state in
                    // A cancellation before this line ran its handler in vain; one after it finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.mayHaveRest, rest?.isEmpty == false { return .success(true) }
                    switch state.machine.consumerWillWait(id) {
                    case .wait:
                        state.waiter = continuation
                        return nil
                    case .askAgain: return .success(true)
                    case .end(nil): return .success(false)
                    case .end(let error?): return .failure(error)
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

    @inline(__always)
    private nonisolated(nonsending) static func wait(_ body: (Waiter) -> Void) async throws -> Bool {
        #if DEBUG
        try await withCheckedThrowingContinuation(body)
        #else
        try await withUnsafeThrowingContinuation(body)
        #endif
    }
}

extension ConnectionError {
    fileprivate static var concurrentIteration: ConnectionError {
        ConnectionError(
            code: .concurrentIteration,
            message:
                "Another task is waiting for a message of this connection. Let one task iterate, and pass them on."
        )
    }
}
