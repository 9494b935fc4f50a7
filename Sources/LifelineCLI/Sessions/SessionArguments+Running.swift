internal import Lifeline
internal import Logging

extension SessionArguments {
    /// Runs `body` over a session with the server, and reports the session's events to the user. Closes the session
    /// when `body` is done or the user interrupts it, after the server has processed all pushes.
    ///
    /// - Parameters:
    ///   - endpoint: the server.
    ///   - frameLimit: the most bytes of a frame, in both directions; nil for the session's own default.
    ///   - store: keeps durable messages; nil for none.
    /// - Returns: the result of `body`, and the first message that was in doubt when a session was lost or ended, if
    ///   there was one.
    /// - Throws: what `body` throws, `CommandFailure` when no connection can be expected, `SessionError` when the
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
        // By then all calls are answered, or the command has failed or was interrupted.
        configuration.closeTimeout = .seconds(2)
        let client = SessionClient(
            to: endpoint,
            configuration: configuration,
            // The watcher reports to the user.
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
            // Its error comes from the cancellation.
            _ = await group.nextResult()
        }
        return try first.get()
    }
}
