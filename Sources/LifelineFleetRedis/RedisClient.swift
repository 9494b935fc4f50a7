internal import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport
package import Logging

/// A client of one Redis server, with a connection for commands and one for messages. Each is made when it is first
/// needed, and made again when it is lost, until the client is closed.
///
/// Everything may be called from any thread. Commands are written in the order of their calls, many at a time, and end in
/// that order.
package final class RedisClient: Sendable {
    private typealias Commands = CommandPipeline<RedisWaiter>
    private typealias Subscriptions = SubscriptionTable<RedisWaiter>

    /// Runs tasks where replies come in, so that they need not go to another thread for each.
    package let executor: (any TaskExecutor)?

    private let timeout: Duration
    private let commands: RedisLink<Commands>
    private let subscriptions: RedisLink<Subscriptions>

    /// Reads the files of TLS, if there are any: not to be done on an event loop.
    ///
    /// - Parameters:
    ///   - logger: is told of each connection, and why it ends.
    ///   - handleMessages: takes the messages of channels, in order, and learns where some may be missing. Called on an
    ///     event loop, which it must not block.
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
    /// Without a connection, or while as much is in flight as may be, the command waits. A cancelled task's command is not
    /// sent; one that was sent goes on, and its reply is dropped.
    ///
    /// - Parameter timeout: how long it may take. Nil: what the configuration says.
    /// - Throws: `RedisError`: `refused` where Redis replies with an error, `timedOut` where the command was not sent in
    ///   time, `outcomeUnknown` where it was sent and may have run, `notAdmitted`, `commandTooLarge`, `closed`;
    ///   `CancellationError`.
    package func send(_ command: RedisCommand, timeout: Duration? = nil) async throws -> RedisValue {
        try await commands.wait(timeout: timeout ?? self.timeout) { commands, waiter, deadline throws(RedisError) in
            try commands.accept(command, waiter, deadline: deadline)
        }
    }

    /// Runs a script, and waits for its reply. The script itself is only sent where Redis does not know it.
    ///
    /// - Parameters:
    ///   - keys: the keys that the script uses.
    ///   - timeout: how long each command may take, of which there may be two. Nil: what the configuration says.
    /// - Throws: as `send` does.
    package func run(
        _ script: RedisScript,
        keys: [RedisArgument],
        arguments: [RedisArgument] = [],
        timeout: Duration? = nil
    ) async throws -> RedisValue {
        let rest = [.number(Int64(keys.count))] + keys + arguments
        do {
            return try await send(RedisCommand("EVALSHA", [.text(script.digest)] + rest), timeout: timeout)
        } catch let error as RedisError where error.replyCode == "NOSCRIPT" {
            // It did not run. Redis knows it afterwards.
            return try await send(RedisCommand("EVAL", [.text(script.source)] + rest), timeout: timeout)
        }
    }

    // MARK: Messages

    /// Subscribes to channels, and returns when their messages come.
    ///
    /// The channels are subscribed to again on each new connection, also where this throws: to stop that, unsubscribe from
    /// them. Only those that Redis refuses are forgotten.
    ///
    /// - Parameter timeout: how long it may take. Nil: what the configuration says.
    /// - Throws: `RedisError`: `timedOut`, `refused`, `notAdmitted`, `closed`; `CancellationError`.
    package func subscribe(to channels: [String], timeout: Duration? = nil) async throws {
        _ = try await subscriptions.wait(timeout: timeout ?? self.timeout) {
            table,
            waiter,
            deadline throws(RedisError) in
            try table.subscribe(channels, waiter, deadline: deadline)
        }
    }

    /// Ends the subscription to channels, and returns when no more of their messages come.
    ///
    /// - Parameter timeout: how long it may take. Nil: what the configuration says.
    /// - Throws: `RedisError`: `timedOut`, `closed`; `CancellationError`. The subscription ends all the same, later.
    package func unsubscribe(from channels: [String], timeout: Duration? = nil) async throws {
        _ = try await subscriptions.wait(timeout: timeout ?? self.timeout) {
            table,
            waiter,
            deadline throws(RedisError) in
            try table.unsubscribe(channels, waiter, deadline: deadline)
        }
    }

    /// Stops reading messages. Those of the read under way still come.
    ///
    /// Redis keeps what is not read, and disconnects a client for which it keeps too much: that is a gap.
    package func pauseMessages() { subscriptions.setPaused(true) }

    /// Reads messages again.
    package func resumeMessages() { subscriptions.setPaused(false) }

    // MARK: The end

    /// Ends both connections, and everything that waits. Returns when there is no connection any more.
    package func close() async {
        await commands.close()
        await subscriptions.close()
    }
}
