internal import LifelineCore
internal import NIOConcurrencyHelpers

/// What a `BatchQueue` does, whatever the batches are of: compiled once, where generic code looks types up with every batch,
/// which took 4 of the 50 µs that a server spends on a read of 64 messages and their echoes.
final class AnyBatchQueue: Sendable {
    // A consumer waits up to once for each read. A checked continuation costs twice as much; debug builds use it.
    #if DEBUG
    private typealias Waiter = CheckedContinuation<Void, any Error>
    #else
    private typealias Waiter = UnsafeContinuation<Void, any Error>
    #endif

    private struct State {
        var machine: BatchQueueStateMachine<AnyBatch>
        var waiter: Waiter?
        /// Whether something was put into the consumers' rest since it was found empty, which takes generic code to find out.
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
        waiter?.resume()
        return demand
    }

    var isPaused: Bool { state.withLockedValue { $0.machine.isPaused } }

    func finish(throwing error: ConnectionError?) {
        state.withLockedValue { $0.machine.finished(throwing: error) ? $0.waiter.take() : nil }?.resume()
    }

    func finishDiscarding() -> [AnyBatch] {
        finish(throwing: nil)
        return state.withLockedValue { $0.machine.discarded() }
    }

    // MARK: The consumer's side

    nonisolated(nonsending) func fill(_ rest: any BatchRest, resumeReading: () -> Void) async throws -> Bool {
        while true {
            try Task.checkCancellation()
            let action: NextAction? = state.withLockedValue { state in
                if state.mayHaveRest {
                    guard rest.isEmpty else { return nil }
                    state.mayHaveRest = false
                }
                let action = state.machine.nextRequested()
                if case .deliver(let batch, _) = action {
                    rest.put(batch)
                    state.mayHaveRest = true
                }
                return action
            }
            switch action {
            // Another consumer has left something.
            case nil: return true
            case .deliver(_, let resumes):
                if resumes { resumeReading() }
                return true
            case .end(nil): return false
            case .end(let error?): throw error
            case .wait: try await waitForBatch(rest)
            }
        }
    }

    nonisolated(nonsending) func nextBatch(
        after rest: (any BatchRest)?,
        resumeReading: () -> Void
    ) async throws -> AnyBatch? {
        while true {
            try Task.checkCancellation()
            switch nextAction(after: rest) {
            case .deliver(let batch, let resumes):
                if resumes { resumeReading() }
                return batch
            case .end(nil): return nil
            case .end(let error?): throw error
            case .wait: try await waitForBatch(rest)
            }
        }
    }

    func takeBatch(after rest: any BatchRest, resumeReading: () -> Void) -> AnyBatch? {
        guard case .deliver(let batch, let resumes) = nextAction(after: rest) else { return nil }
        if resumes { resumeReading() }
        return batch
    }

    private typealias NextAction = BatchQueueStateMachine<AnyBatch>.NextAction

    private func nextAction(after rest: (any BatchRest)?) -> NextAction {
        state.withLockedValue { state in
            // Another consumer may have been quicker.
            if state.mayHaveRest, let rest {
                state.mayHaveRest = false
                if let left = rest.takeAll() { return .deliver(left, resumeReading: false) }
            }
            return state.machine.nextRequested()
        }
    }

    private nonisolated(nonsending) func waitForBatch(_ rest: (any BatchRest)?) async throws {
        let id = state.withLockedValue { $0.machine.makeConsumerID() }
        try await withTaskCancellationHandler {
            try await Self.wait { continuation in
                let result: Result<Void, any Error>? = state.withLockedValue { state in
                    // A cancellation before this line ran its handler in vain; one after it finds the waiter.
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.mayHaveRest, rest?.isEmpty == false { return .success(()) }
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

    @inline(__always)
    private nonisolated(nonsending) static func wait(_ body: (Waiter) -> Void) async throws {
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
                "Another task is waiting for a message of this connection. Let one task iterate, and hand on from it."
        )
    }
}
