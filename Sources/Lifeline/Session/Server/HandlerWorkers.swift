internal import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// Runs the handlers of a session's requests in tasks that each take one request after the other. A task for each
/// request would cost more than most handlers do.
///
/// Requests wait in a queue. The first wakes one task, which also takes the following ones as long as its handlers
/// return without waiting. Before a task begins a request, it wakes another task if more requests wait. That task
/// continues with them if the handler has to wait, and otherwise finds nothing to do.
final class HandlerWorkers: Sendable {
    /// Takes requests until it is retired, or until the queue is empty and enough other workers are idle.
    private final class Worker: Sendable {
        /// The executor that it runs on; nil for Swift's default one.
        let executor: (any TaskExecutor)?
        // Both are accessed only under the lock of the workers' state, so they need none of their own.
        nonisolated(unsafe) var task: Task<Void, Never>?
        /// Whether it takes no more requests, because its task is cancelled, or new requests run on another executor.
        nonisolated(unsafe) var isRetired = false

        init(_ executor: (any TaskExecutor)?) { self.executor = executor }
    }

    private struct State {
        /// The waiting requests by their counts, which ascend.
        var queue = SparseQueue<InboundRequest>()
        /// The workers that handle requests, by the requests' counts.
        var running = SparseQueue<Worker>()
        /// All workers that have not stopped.
        var all: [ObjectIdentifier: Worker] = [:]
        /// The workers without a request, and their continuations.
        var idle: [(worker: Worker, waiter: Waiter)] = []
        /// Whether a call is set that checks the idle workers.
        var watchesIdle = false
        /// The number of requests since that call was set.
        var requestCount = 0
        /// The executor for new requests; nil for Swift's default one.
        var executor: (any TaskExecutor)?
        /// Whether a worker was woken that has not checked the queue yet.
        var isWaking = false
        /// Whether all present and later handlers are cancelled.
        var cancelsAll = false
        /// Whether no more requests come.
        var hasEnded = false
    }

    /// The largest number of idle tasks: two, because one continues when the other has to wait. Each takes some 2 KiB.
    private static let idleLimit = 2
    /// The time without requests after which a session's tasks stop. A new task costs 1 µs.
    private static let idleTime = Duration.seconds(10)

    private let state = NIOLockedValueBox(State())

    /// The step that follows after the lock is released.
    private enum Next {
        case nothing
        case wake(Waiter)
        case start(Worker)
    }

    /// Handles a request of a session on an executor.
    func submit(_ request: InboundRequest, of session: SessionServerEnd, on executor: (any TaskExecutor)?) {
        let next = state.withLockedValue { state in
            state.queue.append(request.request.count, request)
            state.requestCount += 1
            state.executor = executor
            return wake(&state)
        }
        perform(next, for: session)
    }

    /// Makes sure that a worker will check the queue.
    private func wake(_ state: inout State) -> Next {
        if state.isWaking || state.queue.isEmpty { return .nothing }
        state.isWaking = true
        if let (worker, waiter) = state.idle.popLast() {
            // A worker on another executor than new requests retires, and starts another worker.
            if worker.executor !== state.executor { worker.isRetired = true }
            return .wake(waiter)
        }
        let worker = Worker(state.executor)
        state.all[ObjectIdentifier(worker)] = worker
        return .start(worker)
    }

    private func perform(_ next: Next, for session: SessionServerEnd) {
        switch next {
        case .nothing: break
        case .wake(let waiter): waiter.resume()
        case .start(let worker): start(worker, for: session)
        }
    }

    private func start(_ worker: Worker, for session: SessionServerEnd) {
        // Detached, because the present task has nothing to do with the requests.
        let task = Task.detached(executorPreference: worker.executor) { await self.run(worker, for: session) }
        let isCancelled = state.withLockedValue { state in
            worker.task = task
            return state.cancelsAll || worker.isRetired
        }
        if isCancelled { task.cancel() }
    }

    private func run(_ worker: Worker, for session: SessionServerEnd) async {
        // Only the count, because a waiting worker must not keep a request alive.
        var last: UInt64?
        while true {
            switch next(for: worker, of: session, after: last) {
            case .handle(let request):
                await session.handle(request)
                last = request.request.count
            case .wait:
                await wait(worker, for: session)
                last = nil
            case .stop(let isLast):
                if isLast { session.handlersReturned() }
                return
            }
        }
    }

    private enum Step {
        case handle(InboundRequest)
        case wait
        case stop(isLast: Bool)
    }

    /// Never inlined into the function that waits for handlers, whose task would keep the memory for all of this
    /// meanwhile.
    @inline(never)
    private func next(for worker: Worker, of session: SessionServerEnd, after last: UInt64?) -> Step {
        let (step, next) = state.withLockedValue { state -> (Step, Next) in
            if let last {
                state.running.remove(last)
            } else {
                state.isWaking = false
            }
            if worker.isRetired && !state.cancelsAll || state.queue.isEmpty && !waits(worker, state) {
                state.all[ObjectIdentifier(worker)] = nil
                return (.stop(isLast: isOver(state)), wake(&state))
            }
            guard let (count, request) = state.queue.first else { return (.wait, .nothing) }
            state.queue.remove(count)
            state.running.append(count, worker)
            return (.handle(request), wake(&state))
        }
        perform(next, for: session)
        return step
    }

    private func waits(_ worker: Worker, _ state: State) -> Bool {
        !state.hasEnded && !worker.isRetired && state.idle.count < Self.idleLimit
    }

    private func isOver(_ state: State) -> Bool {
        state.hasEnded && state.all.isEmpty && state.queue.isEmpty
    }

    private func wait(_ worker: Worker, for session: SessionServerEnd) async {
        await state.waitUninterrupted { state, waiter in
            guard state.queue.isEmpty || state.isWaking, waits(worker, state) else { return false }
            state.idle.append((worker, waiter))
            watchIdle(&state, session.server.timer)
            return true
        }
    }

    /// Sets the call that checks the idle workers later.
    private func watchIdle(_ state: inout State, _ timer: SharedTimer) {
        if state.watchesIdle { return }
        (state.watchesIdle, state.requestCount) = (true, 0)
        _ = timer.run(at: timer.clock.now + Self.idleTime) { [weak self] in self?.stopIdle(timer) }
    }

    /// Stops the idle workers if no request has come for a while.
    private func stopIdle(_ timer: SharedTimer) {
        let idle = state.withLockedValue { state -> [(worker: Worker, waiter: Waiter)] in
            state.watchesIdle = false
            if state.requestCount > 0 {
                if !state.idle.isEmpty { watchIdle(&state, timer) }
                return []
            }
            for (worker, _) in state.idle { worker.isRetired = true }
            defer { state.idle = [] }
            return state.idle
        }
        for (_, waiter) in idle { waiter.resume() }
    }

    /// Notes that the peer no longer waits for a request's response. Returns the request if its handler has not begun,
    /// which it then never does.
    func cancel(_ request: IncomingRequest) -> InboundRequest? {
        let (waiting, task) = state.withLockedValue { state -> (InboundRequest?, Task<Void, Never>?) in
            if let waiting = state.queue.remove(request.count) { return (waiting, nil) }
            guard let worker = state.running[request.count] else { return (nil, nil) }
            // The worker takes no other request, which would be cancelled, too.
            worker.isRetired = true
            return (nil, worker.task)
        }
        // Cancelling runs the user's code, which may call this session.
        task?.cancel()
        return waiting
    }

    /// Cancels all present and later handlers.
    func cancelAll() {
        let tasks = state.withLockedValue { state -> [Task<Void, Never>?] in
            state.cancelsAll = true
            return state.all.values.map { $0.task }
        }
        for task in tasks { task?.cancel() }
    }

    /// Notes that no more requests come. Returns whether all handlers have returned; if not, `handlersReturned`
    /// follows.
    func end() -> Bool {
        let (idle, haveReturned) = state.withLockedValue { state in
            state.hasEnded = true
            defer { state.idle = [] }
            return (state.idle, isOver(state))
        }
        for (_, waiter) in idle { waiter.resume() }
        return haveReturned
    }
}
