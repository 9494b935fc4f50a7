internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
package import Logging

/// A client of one Redis server, with a connection for commands and one for messages. Each is made when it is first
/// needed, and made again when it is lost, until the client is closed.
///
/// All methods may be called from any thread. Commands are written in the order of the calls, many at a time, and Redis
/// runs them in that order.
package final class RedisClient: Sendable {
    private typealias Commands = CommandPipeline<RedisWaiter>
    private typealias Subscriptions = SubscriptionTable<RedisWaiter>

    /// Runs tasks on the event loop of the connections, so that a reply needs no switch to another thread.
    package let executor: (any TaskExecutor)?

    private let timeout: Duration
    private let commands: RedisLink<Commands>
    private let subscriptions: RedisLink<Subscriptions>

    /// Makes a client. Reads the files of the TLS configuration, so do not call it on an event loop.
    ///
    /// - Parameters:
    ///   - logger: receives each connection, and the reason for its end.
    ///   - handleMessages: receives the messages of channels in order, and the gaps between them. Called on an event
    ///     loop, which it must not block.
    /// - Throws: `RedisError` `invalidConfiguration`.
    package init(
        _ configuration: RedisConfiguration,
        logger: Logger = Logger(label: "lifeline.redis"),
        handleMessages: @escaping @Sendable (RedisSubscriptionEvent) -> Void = { _ in }
    ) throws(RedisError) {
        let route = try RedisRoute(configuration)
        executor = route.transport.executor
        timeout = configuration.timeout
        commands = RedisLink(
            RedisMachine(configuration, role: Commands(configuration), seed: .random(in: .min ... .max)),
            route: route,
            logger: logger
        )
        subscriptions = RedisLink(
            RedisMachine(configuration, role: Subscriptions(), seed: .random(in: .min ... .max)),
            route: route,
            logger: logger,
            handleEvent: handleMessages
        )
    }

    deinit {
        Task { [commands, subscriptions] in
            await commands.close()
            await subscriptions.close()
        }
    }

    // MARK: Commands

    /// Sends a command, and waits for its reply.
    ///
    /// The command waits while there is no connection, and while the limits of the configuration allow no more in
    /// flight. Cancelling the task withdraws a waiting command. A command that was sent goes on, and its reply is
    /// dropped.
    ///
    /// - Parameter timeout: the timeout; nil for the configuration's.
    /// - Throws: `RedisError`: `refused` when Redis replies with an error, `timedOut` when the command was not sent in
    ///   time, `outcomeUnknown` when it was sent and may have run, `notAdmitted`, `commandTooLarge`, `closed`;
    ///   `CancellationError`.
    package func send(_ command: RedisCommand, timeout: Duration? = nil) async throws -> RedisValue {
        try await commands.wait(timeout: timeout ?? self.timeout) { commands, waiter, deadline throws(RedisError) in
            try commands.accept(command, waiter, deadline: deadline)
        }
    }

    /// Runs a script, and waits for its reply. Sends the script's source only if Redis does not know the script.
    ///
    /// - Parameters:
    ///   - keys: the keys that the script uses.
    ///   - timeout: the timeout of each of the commands, of which there may be two; nil for the configuration's.
    /// - Throws: as `send` does.
    package func run(
        _ script: RedisScript,
        keys: [RedisArgument],
        arguments: [RedisArgument] = [],
        timeout: Duration? = nil
    ) async throws -> RedisValue {
        func command(_ name: String, _ script: String) -> RedisCommand {
            RedisCommand(name, [.text(script), .number(Int64(keys.count))] + keys + arguments)
        }
        do {
            return try await send(command("EVALSHA", script.digest), timeout: timeout)
        } catch let error as RedisError where error.replyCode == "NOSCRIPT" {
            // The script did not run. Redis knows it afterwards.
            return try await send(command("EVAL", script.source), timeout: timeout)
        }
    }

    // MARK: Messages

    /// Subscribes to channels, and returns when their messages come.
    ///
    /// Each new connection subscribes to the channels again, even if this method has thrown, until `unsubscribe`.
    /// Channels that Redis refuses are forgotten.
    ///
    /// - Parameter timeout: the timeout; nil for the configuration's.
    /// - Throws: `RedisError`: `timedOut`, `refused`, `notAdmitted`, `closed`; `CancellationError`.
    package func subscribe(to channels: [String], timeout: Duration? = nil) async throws {
        _ = try await subscriptions.wait(timeout: timeout ?? self.timeout) {
            table,
            waiter,
            deadline throws(RedisError) in
            try table.subscribe(channels, waiter, deadline: deadline)
        }
    }

    /// Unsubscribes from channels, and returns when no more of their messages come.
    ///
    /// - Parameter timeout: the timeout; nil for the configuration's.
    /// - Throws: `RedisError`: `timedOut`, `closed`; `CancellationError`. Then the subscription ends later.
    package func unsubscribe(from channels: [String], timeout: Duration? = nil) async throws {
        _ = try await subscriptions.wait(timeout: timeout ?? self.timeout) {
            table,
            waiter,
            deadline throws(RedisError) in
            try table.unsubscribe(channels, waiter, deadline: deadline)
        }
    }

    /// Stops reading messages. Messages that were already read still come.
    ///
    /// Redis keeps unread messages up to a limit (`client-output-buffer-limit pubsub`), and then closes the connection,
    /// which appears as a gap.
    package func pauseMessages() { subscriptions.setPaused(true) }

    /// Resumes reading messages.
    package func resumeMessages() { subscriptions.setPaused(false) }

    // MARK: The end

    /// Closes both connections, and fails all waiting calls. Returns when both are closed.
    package func close() async {
        await commands.close()
        await subscriptions.close()
    }
}
