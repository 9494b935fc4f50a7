internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import Logging
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import Synchronization

/// A task that waits for a reply.
typealias RedisWaiter = QuickContinuation<Result<RedisValue, any Error>>

/// Drives a machine: reports the events of one connection of a client to it, and runs its actions.
final class RedisLink<Role: RedisRole>: Sendable where Role.Waiter == RedisWaiter {
    typealias Machine = RedisMachine<Role>

    /// The number of a call, for the task's cancellation; 0 until the machine has it.
    private final class Call: Sendable {
        let id = Atomic<UInt64>(0)
    }

    private struct State {
        var machine: Machine
        /// Whether the loop is going to call `turn`.
        var isTurnComing = false
    }

    /// State that only the loop uses.
    private struct LoopState {
        var attempt: Task<Void, Never>?
        var channel: (any Channel)?
        var timer = LoopTimer()
        /// The actions that were decided and have not run.
        var decided = FIFO<Machine.Actions>()
        var isActing = false
    }

    private let state: NIOLockedValueBox<State>
    private let loopState: NIOLoopBoundBox<LoopState>
    private let loop: any EventLoop
    private let route: RedisRoute
    private let logger: Logger
    private let handleEvent: @Sendable (RedisSubscriptionEvent) -> Void

    init(
        _ machine: Machine,
        route: RedisRoute,
        logger: Logger,
        handleEvent: @escaping @Sendable (RedisSubscriptionEvent) -> Void = { _ in }
    ) {
        state = NIOLockedValueBox(State(machine: machine))
        loop = route.transport.loop
        loopState = .makeBoxSendingValue(LoopState(), eventLoop: loop)
        (self.route, self.logger, self.handleEvent) = (route, logger, handleEvent)
    }

    // MARK: From any thread

    /// Passes a call to the role, and waits for the result.
    ///
    /// - Parameter begin: gives the role the waiter, and returns the number of the call; nil if there is nothing to
    ///   wait for. Called under the lock.
    func wait(
        timeout: Duration,
        _ begin: (inout Role, RedisWaiter, _ deadline: MonotonicTime) throws(RedisError) -> UInt64?
    ) async throws -> RedisValue {
        let call = Call()
        let deadline = MonotonicTime.now() + timeout
        let result = await withTaskCancellationHandler {
            await withQuickContinuation { (waiter: RedisWaiter) in
                self.begin(waiter, call) { role throws(RedisError) in try begin(&role, waiter, deadline) }
            }
        } onCancel: {
            cancel(call)
        }
        return try result.get()
    }

    private func begin(
        _ waiter: RedisWaiter,
        _ call: Call,
        _ begin: (inout Role) throws(RedisError) -> UInt64?
    ) {
        var (result, bringsTurn): (Result<RedisValue, any Error>?, Bool) = (nil, false)
        state.withLockedValue { state in
            // A cancellation before this ran its handler in vain; one after this finds the number.
            if Task.isCancelled { return result = .failure(CancellationError()) }
            do throws(RedisError) {
                guard let id = try begin(&state.machine.role) else { return result = .success(.null) }
                call.id.store(id, ordering: .relaxed)
                bringsTurn = !state.isTurnComing
                state.isTurnComing = true
            } catch {
                result = .failure(error)
            }
        }
        if let result { waiter.resume(returning: result) }
        if bringsTurn { loop.execute { self.turn() } }
    }

    private func cancel(_ call: Call) {
        let actions = state.withLockedValue { $0.machine.cancel(call.id.load(ordering: .relaxed)) }
        for (waiter, result) in actions.results { waiter.resume(returning: result) }
    }

    /// Stops or resumes reading.
    func setPaused(_ isPaused: Bool) {
        if loop.inEventLoop { pauseChanged(isPaused) } else { loop.execute { self.pauseChanged(isPaused) } }
    }

    /// Closes the connection for good. Returns when it is closed.
    func close() async {
        try? await loop.flatSubmit { self.closeOnLoop() }.get()
    }

    // MARK: On the loop

    /// Notes that the connection of an attempt is open.
    ///
    /// - Throws: `CancellationError` when it is no longer wanted.
    private func opened(_ channel: any Channel, attempt: UInt64) throws {
        let handler = RedisChannelHandler(limits: route.limits) { replies, failure in
            self.received(replies, failure: failure, attempt: attempt)
        } lost: { error in
            self.lost(error, attempt: attempt)
        }
        try channel.pipeline.syncOperations.addHandler(handler)
        var isWanted = false
        run { machine, now in
            guard let actions = machine.opened(attempt, now: now) else { return Machine.Actions() }
            isWanted = true
            loopState.value.channel = channel
            return actions
        }
        guard isWanted else { throw CancellationError() }
        pauseReading(state.withLockedValue { $0.machine.connection.isPaused })
    }

    private func received(_ replies: [RedisValue], failure: RESPError?, attempt: UInt64) {
        run { $0.received(replies, failure: failure, attempt: attempt, now: $1) }
    }

    private func lost(_ error: RedisError, attempt: UInt64) {
        run { $0.lost(error, attempt: attempt, now: $1) }
    }

    private func turn() { run { $0.turn(now: $1) } }

    private func pauseChanged(_ isPaused: Bool) {
        run { machine, now in
            machine.pauseChanged(isPaused, now: now)
            return machine.turn(now: now)
        }
        pauseReading(isPaused)
    }

    private func pauseReading(_ isPaused: Bool) {
        try? loopState.value.channel?.syncOptions?.setOption(.autoRead, value: !isPaused)
    }

    private func closeOnLoop() -> EventLoopFuture<Void> {
        let (attempt, channel) = (loopState.value.attempt, loopState.value.channel)
        run { machine, _ in machine.close() }
        loopState.value.timer.cancel()
        return loop.makeFutureWithTask { await attempt?.value }
            .flatMap { channel?.closeFuture ?? self.loop.makeSucceededVoidFuture() }
    }

    /// Lets the machine decide, and runs its actions. An action may end the connection and call this again: the new
    /// actions wait for the old ones, so that bytes and events keep their order.
    private func run(_ decide: (inout Machine, _ now: MonotonicTime) -> Machine.Actions) {
        let now = MonotonicTime.now()
        let (actions, deadline) = state.withLockedValue { state in
            state.isTurnComing = false
            return (decide(&state.machine, now), state.machine.nextDeadline)
        }
        if let deadline {
            loopState.value.timer.set(to: deadline, now: now, on: loop) {
                self.loopState.value.timer.fired()
                self.turn()
            }
        }
        loopState.value.decided.append(actions)
        guard !loopState.value.isActing else { return }
        loopState.value.isActing = true
        while let actions = loopState.value.decided.popFirst() { act(actions) }
        loopState.value.isActing = false
    }

    private func act(_ actions: Machine.Actions) {
        if actions.disconnects { disconnect() }
        if let attempt = actions.connects { connect(attempt) }
        if actions.bytes.readableBytes > 0 { loopState.value.channel?.writeAndFlush(actions.bytes, promise: nil) }
        for event in actions.events { handleEvent(event) }
        for (waiter, result) in actions.results { waiter.resume(returning: result) }
        for step in actions.steps { log(step) }
    }

    private func connect(_ attempt: UInt64) {
        loopState.value.attempt = Task {
            do {
                try await route.connect { try self.opened($0, attempt: attempt) }
            } catch {
                loop.execute { self.lost(.connectionFailed(error), attempt: attempt) }
            }
        }
    }

    private func disconnect() {
        loopState.value.attempt?.cancel()
        loopState.value.channel?.cutSocket()
        (loopState.value.attempt, loopState.value.channel) = (nil, nil)
    }

    private func log(_ step: RedisConnectionStep) {
        switch step {
        case .connected(let attempt):
            logger.log(level: attempt > 1 ? .notice : .debug, "Connected to Redis", metadata: ["attempt": "\(attempt)"])
        case .lost(let error, let delay):
            logger.notice(
                "Not connected to Redis",
                metadata: ["reason": "\(error)", "next-attempt-in": "\(delay)"]
            )
        }
    }
}
