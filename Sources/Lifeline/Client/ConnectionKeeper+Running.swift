internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

/// The user of a keeper's connections: a client with its messages, or a session.
protocol ConnectionUser: AnyObject, Sendable {
    /// The number of messages received over all connections; 0 where it is not needed.
    var receivedCount: Int { get }
    /// Makes a connection. The task is cancelled when the attempt is given up.
    func connect(as id: ClientMachine.ConnectionID) async throws -> any TransportConnection
    /// Uses an open connection that was reported to observers. Returns when there is nothing more to do for it, at the
    /// latest when the connection is closed.
    func use(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID) async
    /// The attempt or connection is over.
    func ended(_ id: ClientMachine.ConnectionID)
}

extension ConnectionUser {
    var receivedCount: Int { 0 }
}

// The tasks of a running client.
extension ConnectionKeeper {
    /// Connects, and keeps connected, until the client is closed or the task is cancelled, which cuts the connection.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    func run(for user: some ConnectionUser) async throws {
        await withTaskCancellationHandler {
            await withTaskGroup { group in
                group.addTask { await self.watchNetwork() }
                group.addTask { await self.runTimer() }
                group.addTask {
                    var log = TransitionLogger(events: ClientEvents(history: self.history), logger: self.logger)
                    await log.run()
                }
                while let attempt = await nextAttempt() { await serve(attempt, for: user) }
                finish()
                group.cancelAll()
            }
        } onCancel: {
            change { $0.cancelled(now: $1) }
        }
        try Task.checkCancellation()
    }

    private func watchNetwork() async {
        await environment.network.watch { status in
            switch status {
            case .available: self.change { $0.networkUp(now: $1) }
            case .unavailable: self.change { $0.networkLost(now: $1) }
            }
        }
    }

    /// Reports to the machine when its deadlines come, until the task is cancelled.
    private func runTimer() async {
        await timerBell.runTimer(by: clock) {
            state.withLockedValue { state in
                state.armedDeadline = state.machine.nextDeadline
                return state.armedDeadline
            }
        } fire: {
            change { $0.timerFired(now: $1) }
        }
    }

    /// Returns the next attempt that the machine asks for; nil when there will be none.
    private func nextAttempt() async -> KeptAttempt? {
        while true {
            let (attempt, isFinished) = state.withLockedValue { ($0.nextAttempt.take(), $0.isFinished) }
            if attempt != nil || isFinished { return attempt }
            // Uninterrupted, because cancellation of the task has already closed the machine.
            await loopBell.waitUninterrupted()
        }
    }

    /// Makes the connection of an attempt, and serves it until it ends.
    private func serve(_ attempt: KeptAttempt, for user: some ConnectionUser) async {
        let id = attempt.id
        let connection: any TransportConnection
        do {
            guard let made = try await attempt.runUntilGivenUp({ try await user.connect(as: id) }) else {
                user.ended(id)
                change { $0.connectFailed(id, nil, now: $1) }
                return
            }
            connection = made
        } catch {
            user.ended(id)
            change { $0.connectFailed(id, Self.reason(for: error), now: $1) }
            return
        }
        let actions = update { state, now in
            state.connection = connection
            let actions = state.machine.connected(id, now: now)
            return (actions, actions)
        }
        let isInUse = actions.contains(.use(id))
        async let using: Void = isInUse ? user.use(connection, as: id) : ()
        let report = await connection.waitUntilClosed()
        // A connection that has ended neither accepts nor refuses anything, so this ends by itself.
        await using
        let receivedCount = user.receivedCount
        // First, because code that learns that the connection is gone may send at once.
        user.ended(id)
        update { state, now in
            state.connection = nil
            state.receivedCount = receivedCount
            return ((), state.machine.connectionClosed(id, report, now: now))
        }
    }

    /// Why an attempt failed; nil when the task that runs the client was cancelled, which the machine learns in another
    /// way.
    private static func reason(for error: any Error) -> ConnectionError? {
        if error is CancellationError { return nil }
        return error as? ConnectionError
            ?? ConnectionError(code: .connectFailed, message: "Connecting failed.", cause: error)
    }

    /// Makes a connection with a receiver of its own.
    func connect<Receiver: FrameReceiver>(
        _ makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> any TransportConnection {
        try await environment.transport.connect(
            to: endpoint,
            options: layers.added(to: options),
            makeReceiver: makeReceiver
        ).connection
    }

    /// Reports that the peer has ended its side of a connection in order. Returns the reason.
    func inputEnded(_ id: ConnectionID) -> ConnectionError {
        update { state, now in
            let reason = state.machine.reasonOfInputEnd
            return (reason, state.machine.inputEnded(id, now: now))
        }
    }
}

extension KeptAttempt {
    /// Runs `body`, and cancels it when the attempt is given up. Returns nil when `body` had no result then.
    fileprivate func runUntilGivenUp<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result? {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                _ = try? await self.givenUp.wait()
                return nil
            }
            var result: Result?
            var failure: (any Error)?
            // The first task to end cancels the other. A result that comes all the same must not be lost.
            while let next = await group.nextResult() {
                switch next {
                case .success(let value): result = value ?? result
                case .failure(let error): failure = error
                }
                group.cancelAll()
            }
            if let failure, givenUp.value == nil { throw failure }
            return result
        }
    }
}
