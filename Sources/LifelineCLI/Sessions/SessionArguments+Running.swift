internal import Lifeline
internal import Logging

extension SessionArguments {
    /// Runs `body` over a session with the server, tells the user what becomes of the session meanwhile, and closes it
    /// when `body` is done or the user interrupts it, when the server has processed what was pushed.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - frameLimit: the most bytes of a frame, in both directions; nil for the session's own default.
    ///   - store: keeps what is durable; nil: nothing is.
    /// - Returns: what `body` returns, and the first message that was in doubt when a session was lost or ended, where
    ///   there was one.
    /// - Throws: what `body` throws, `CommandFailure` when there is no hope of a connection, `SessionError` when the
    ///   server has ended the session, `Interrupted`.
    func withSession<Value: Sendable>(
        to endpoint: Endpoint,
        frameLimit: Int? = nil,
        store: (any SessionStore)? = nil,
        _ body: @escaping @Sendable (SessionClient) async throws -> Value
    ) async throws -> (value: Value, undelivered: SessionMessageInDoubt?) {
        var configuration = try configuration
        if let frameLimit { configuration.client.connection.maximumFrameLength = frameLimit }
        configuration.store = store
        // What was asked is answered then, or the command has failed or was interrupted.
        configuration.closeTimeout = .seconds(2)
        let client = SessionClient(
            to: endpoint,
            configuration: configuration,
            // The watcher tells what there is to tell.
            logger: Logger(label: "lifeline") { _ in SwiftLogNoOpLogHandler() }
        )
        let watcher = SessionWatcher(
            client: client,
            endpoint: endpoint,
            timeout: try connectionTimeout,
            isQuiet: quiet
        )
        let interruption = await Interruption()
        let value = try await withThrowingTaskGroup(of: Part<Value>.self) { group in
            group.addTask {
                try await client.run()
                return .client
            }
            group.addTask {
                try await watcher.watchConnection()
                return .watcher
            }
            group.addTask {
                try await watcher.watchTimeout()
                return .watcher
            }
            group.addTask {
                await watcher.watchSession()
                return .session
            }
            group.addTask {
                let result: Result<Value, any Error>
                do {
                    result = .success(try await interruptible(by: interruption) { try await body(client) })
                } catch {
                    result = .failure(error)
                }
                watcher.willLeave()
                await client.close()
                return .body(try result.get())
            }
            defer { group.cancelAll() }
            var (value, hasClientEnded, hasSessionEnded) = (Value?.none, false, false)
            while let part = try await group.next() {
                switch part {
                case .body(let result): value = result
                case .client: hasClientEnded = true
                case .session: hasSessionEnded = true
                case .watcher: break
                }
                if let value, hasClientEnded, hasSessionEnded { return value }
            }
            throw CancellationError()
        }
        return (value, watcher.undelivered)
    }
}

/// A task that has ended.
private enum Part<Value: Sendable> { case body(Value), client, session, watcher }

/// Runs `body`, and cancels it when the user interrupts the command.
///
/// - Throws: what `body` throws; `Interrupted`.
private func interruptible<Value: Sendable>(
    by interruption: Interruption,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Result<Value, Interrupted>.self) { group in
        group.addTask { .success(try await body()) }
        group.addTask {
            guard let signal = await interruption.wait() else { throw CancellationError() }
            return .failure(Interrupted(signal: signal))
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { throw CancellationError() }
        if case .failure = first {
            group.cancelAll()
            // What it throws comes of the cancelling.
            _ = await group.nextResult()
        }
        return try first.get()
    }
}
