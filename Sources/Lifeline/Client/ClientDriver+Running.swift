internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// What runs while the client runs.
extension ClientDriver {
    /// What the loop does next.
    private enum Step {
        case begin(Attempt)
        case wait
        case end
    }

    private func nextStep() -> Step {
        state.withLockedValue { state in
            if let attempt = state.nextAttempt.take() { return .begin(attempt) }
            return state.manager.state == .closed ? .end : .wait
        }
    }

    /// Makes one connection after the other, as the machine asks for them, until it is closed. There is never more than
    /// one: the next is begun when the one before is gone.
    ///
    /// - Parameter serve: Makes a connection and stays with it to its end.
    func runLoop(_ serve: (Attempt) async -> Void) async {
        while true {
            switch nextStep() {
            case .begin(let attempt): await serve(attempt)
            // Whether or not the task is cancelled: its cancellation has closed the machine.
            case .wait: await loopBell.waitUninterrupted()
            case .end: return
            }
        }
    }

    /// Calls the machines when their deadlines come, until the task is cancelled.
    func keepTime() async {
        await timerBell.keepTime(by: clock, nextDeadline: { nextDeadline() }, fire: { timerFired() })
    }

    /// Makes the connection of an attempt, hands over what waits, and stays to its end.
    ///
    /// - Parameters:
    ///   - inbox: Where its messages arrive.
    ///   - whenHeldUp: Called when too many messages wait to be taken for another connection.
    ///   - whenReady: Called when the connection stands and was reported.
    ///   - connect: Connects; cancelling the task gives that up.
    func serve<Received>(
        _ attempt: Attempt,
        inbox: ClientInbox<Received>,
        whenHeldUp: @escaping @Sendable () -> Void,
        whenReady: (any TransportConnection) -> Void,
        connect: @escaping @Sendable () async throws -> any TransportConnection
    ) async {
        inbox.expect(attempt.id)
        // Also drops what came on a connection that was given up before it was reported.
        defer { inbox.detach() }
        let connection: any TransportConnection
        do {
            guard
                let made = try await attempt.unlessGivenUp({
                    // A peer that makes us reconnect again and again must not fill the inbox meanwhile.
                    if inbox.queue.isPaused { whenHeldUp() }
                    while inbox.queue.isPaused { try await inbox.waitForRoom() }
                    return try await connect()
                })
            else { return }
            connection = made
        } catch {
            // The task that runs the client was cancelled, which tells the machine by itself.
            if error is CancellationError { return }
            let failed = ConnectionError(code: .connectFailed, message: "Connecting failed.", cause: error)
            return connectFailed(attempt, error as? ConnectionError ?? failed)
        }
        guard connected(attempt, connection) else {
            connection.abort(attempt.givenUp.value ?? .closedLocally)
            _ = await connection.waitUntilClosed()
            return
        }
        inbox.attach(connection)
        whenReady(connection)
        async let handingOver: Void = handOver(to: connection, attempt.id)
        let report = await connection.waitUntilClosed()
        // A connection that is gone accepts and refuses nothing any more, so that this ends by itself.
        await handingOver
        connectionClosed(attempt, report, receivedCount: inbox.receivedCount)
    }
}

extension ClientDriver.Attempt {
    /// Runs `body`, and cancels it when the attempt is given up. Nil when it had no result then.
    fileprivate func unlessGivenUp<Result: Sendable>(
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
            // Whichever ends first ends the other. A result that comes all the same is not to be lost.
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
