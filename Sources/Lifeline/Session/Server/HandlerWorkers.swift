internal import LifelineCore
internal import LifelineRuntime
internal import NIOConcurrencyHelpers

/// Runs the handlers of a session's requests in tasks that take one request after the other: a task for each request
/// would cost more than most handlers do.
///
/// Requests wait in a queue. One task is woken for the first, and takes the others behind it as long as its handlers
/// return without having to wait. Before it begins one, it wakes another task if more requests wait: so that one goes
/// on with them where the first has to wait, and finds nothing to do otherwise.
final class HandlerWorkers: Sendable {
    /// Takes requests until it is retired, or there are none and enough others wait for some.
    private final class Worker: Sendable {
        /// Where it runs; nil: on the threads that Swift has for tasks.
        let executor: (any TaskExecutor)?
        // Both are touched under the lock of the workers' state only, and so need none of their own.
        nonisolated(unsafe) var task: Task<Void, Never>?
        /// Whether it takes no more requests: its task is cancelled, or it runs where no requests come in any more.
        nonisolated(unsafe) var isRetired = false

        init(_ executor: (any TaskExecutor)?) { self.executor = executor }
    }

    private struct State {
        /// By their counts, which ascend.
        var queue = SparseQueue<InboundRequest>()
        /// The workers that handle requests, by the requests' counts.
        var running = SparseQueue<Worker>()
        /// All that have not stopped.
        var all: [ObjectIdentifier: Worker] = [:]
        /// Those without a request, and how each is woken.
        var idle: [(worker: Worker, waiter: Waiter)] = []
        /// Whether those without a request are looked at before long.
        var watchesIdle = false
        /// How many requests have come since that began.
        var requestCount = 0
        /// Where requests that come now are handled; nil: on the threads that Swift has for tasks.
        var executor: (any TaskExecutor)?
        /// Whether a worker was woken that has not looked at the queue yet.
        var isWaking = false
        /// Whether all that runs, and all that begins, is cancelled.
        var cancelsAll = false
        /// Whether no request comes any more.
        var hasEnded = false
    }

    /// How many tasks wait for requests: two, as one goes on where the other has to wait. Each takes up some 2 KiB.
    private static let idleLimit = 2
    /// How long a session goes without requests before its tasks stop. A new one costs 1 µs.
    private static let idleTime = Duration.seconds(10)

    private let state = NIOLockedValueBox(State())

    /// The step that follows once the lock is free.
    private enum Next {
        case nothing
        case wake(Waiter)
        case start(Worker)
    }

    /// Has a request of a session handled on an executor.
    func submit(_ request: InboundRequest, of session: SessionServerEnd, on executor: (any TaskExecutor)?) {
        let next = state.withLockedValue { state in
            state.queue.append(request.request.count, request)
            state.requestCount += 1
            state.executor = executor
            return wake(&state)
        }
        perform(next, for: session)
    }

    /// Sees to it that a worker looks at the queue.
    private func wake(_ state: inout State) -> Next {
        if state.isWaking || state.queue.isEmpty { return .nothing }
        state.isWaking = true
        if let (worker, waiter) = state.idle.popLast() {
            // One that runs elsewhere than requests come in now starts another one.
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
        // Detached: whose task this runs in has nothing to do with the requests.
        let task = Task.detached(executorPreference: worker.executor) { await self.run(worker, for: session) }
        let isCancelled = state.withLockedValue { state in
            worker.task = task
            return state.cancelsAll || worker.isRetired
        }
        if isCancelled { task.cancel() }
    }

    private func run(_ worker: Worker, for session: SessionServerEnd) async {
        // Its count alone, as a worker that waits must not keep a request.
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

    /// Never a part of the function that waits for handlers, whose task would have room for all of this meanwhile.
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

    /// Sees to it that idle tasks are looked at later.
    private func watchIdle(_ state: inout State, _ timer: SharedTimer) {
        if state.watchesIdle { return }
        (state.watchesIdle, state.requestCount) = (true, 0)
        _ = timer.run(at: timer.clock.now + Self.idleTime) { [weak self] in self?.stopIdle(timer) }
    }

    /// Stops the tasks that wait where no request has come for a while.
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

    /// Nobody waits for the response to a request any more. Returns the request where its handler has not begun, and
    /// does not.
    func cancel(_ request: IncomingRequest) -> InboundRequest? {
        let (waiting, task) = state.withLockedValue { state -> (InboundRequest?, Task<Void, Never>?) in
            if let waiting = state.queue.remove(request.count) { return (waiting, nil) }
            guard let worker = state.running[request.count] else { return (nil, nil) }
            // It takes no other request, which would be cancelled, too.
            worker.isRetired = true
            return (nil, worker.task)
        }
        // The user's code runs in it, which may ask this session.
        task?.cancel()
        return waiting
    }

    /// All that runs, and all that begins later, is cancelled.
    func cancelAll() {
        let tasks = state.withLockedValue { state -> [Task<Void, Never>?] in
            state.cancelsAll = true
            return state.all.values.map { $0.task }
        }
        for task in tasks { task?.cancel() }
    }

    /// No request comes any more. Returns whether all handlers have returned; `handlersReturned` follows where they
    /// have not.
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
