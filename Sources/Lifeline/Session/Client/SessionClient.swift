public import LifelineCore
internal import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// The client of a session: calls, streams and pushes over connections that come and go. None of them is lost, doubled
/// or reordered when a connection is lost.
///
/// `run()` drives it. Meanwhile any task may make calls. Generated clients make them with the types of their service:
///
///     try await withSessionClient(to: endpoint) { session in
///         let room = Sample_Room_V1_RoomClient(session)
///         let reply = try await room.say(.with { $0.text = "Hello" })
///         for try await news in room.news { print(news) }
///     }
///
/// **Guarantees.** An accepted call, stream or push is processed exactly once, for as long as the server knows the
/// session: `SessionServerConfiguration` has the time for which it keeps one without a connection. After that a new
/// session begins, `sessionEvents` lists the messages in doubt, and calls that were sent fail with `sessionLost`. To
/// learn the outcome of a single push, push it `until: .processed`.
///
/// **Order.** The pushes of one method are handled one after the other, in the order in which they were accepted, and
/// so are the messages of one stream. There is no other order: pushes of different methods, and requests, are handled
/// concurrently. If one request must come after another, make it after the reply to the first.
public final class SessionClient: Sendable {
    /// The endpoint that the client connects to.
    public var endpoint: Endpoint { keeper.endpoint }

    /// Runs tasks on the event loop of the client's connections:
    ///
    ///     try await withTaskExecutorPreference(session.executor) { try await room.say(greeting) }
    ///
    /// Calls run there without a switch between threads, and calls that are made together go out with few writes. Such
    /// tasks must neither block nor compute for long, because the loop's connections wait meanwhile.
    public var executor: any TaskExecutor { keeper.executor }

    let engine: SessionEngine
    let clientEnd: SessionClientEnd
    let interceptors: [any SessionClientInterceptor]
    let configuration: SessionClientConfiguration
    private let keeper: ConnectionKeeper

    /// Makes a client that does nothing until it is run.
    ///
    /// - Parameters:
    ///   - interceptors: are placed between callers and the session, the first one outermost.
    ///   - logger: receives the events of the connection, as that of a `Client` does. Lost sessions are logged at
    ///     `warning`; sessions that the server ended at `error`; pushes that nobody has asked for at `notice`, once for
    ///     each method.
    public convenience init(
        to endpoint: Endpoint,
        configuration: SessionClientConfiguration = SessionClientConfiguration(),
        interceptors: [any SessionClientInterceptor] = [],
        logger: Logger = Logger(label: "lifeline.session")
    ) {
        self.init(
            to: endpoint,
            configuration: configuration,
            interceptors: interceptors,
            logger: logger,
            environment: ClientEnvironment(endpoint: endpoint, configuration: configuration.client)
        )
    }

    package init(
        to endpoint: Endpoint,
        configuration: SessionClientConfiguration,
        interceptors: [any SessionClientInterceptor],
        logger: Logger,
        environment: ClientEnvironment
    ) {
        self.configuration = configuration
        self.interceptors = interceptors
        let options = configuration.limits.options(
            maximumFrameLength: configuration.client.connection.sessionFrameLimit
        )
        engine = SessionEngine(
            role: .client,
            options: options,
            details: SessionMachine.OpeningDetails(name: configuration.name, metadata: configuration.metadata),
            awaitsStore: configuration.store != nil,
            timer: SharedTimer(clock: environment.clock)
        )
        keeper = ConnectionKeeper(
            to: endpoint,
            configuration: configuration.client,
            carrying: .delimited,
            maximumFrameLength: configuration.client.connection.sessionFrameLimit,
            sendsPings: true,
            maximumPause: configuration.maximumPause,
            environment: environment,
            logger: logger
        )
        clientEnd = SessionClientEnd(
            engine: engine,
            keeper: keeper,
            renewMetadata: configuration.checkedRenewal,
            clock: environment.clock,
            logger: logger
        )
        engine.attach(clientEnd)
    }

    // MARK: Observing

    /// The state of the connection.
    public var state: ConnectionState { keeper.connectionState }

    /// Every step of the connection, for any number of subscribers. Each subscriber begins with the newest step.
    public var events: ClientEvents { ClientEvents(history: keeper.history) }

    /// The last 100 steps of the connection, the oldest first.
    public var history: [ClientEvent] { keeper.history.events }

    /// The events of the session, for any number of subscribers. Each subscriber begins with the newest event.
    public var sessionEvents: SessionEvents { SessionEvents(history: clientEnd.history) }

    /// The last 20 events of the session, the oldest first.
    public var sessionHistory: [SessionEvent] { clientEnd.history.events }

    /// Counts of messages so far.
    public var statistics: SessionStatistics { engine.statistics }

    // MARK: Running

    /// Connects, and keeps the session alive, until it is closed or the task is cancelled. Cancelling ends the session
    /// at once. In a `ServiceGroup`, graceful shutdown does what `close()` does.
    ///
    /// - Throws: `CancellationError` when the task is cancelled. `SessionError` when the server has ended the session:
    ///   `refused`, `replaced` or `versionMismatch`. `StoreError` when the store cannot be used. `ConnectionError`
    ///   `alreadyRun` for a second call, `invalidConfiguration` when the name and the metadata are longer than a server
    ///   takes, or the default delivery is durable and there is no store.
    public func run() async throws {
        do {
            try configuration.defaultDelivery.checkAsDefault(hasStore: configuration.store != nil)
            try configuration.checkOpening(configuration.renewMetadata == nil ? configuration.metadata : [:])
        } catch {
            // Tasks that wait for the session get the error, too.
            engine.end(.misconfigured(error))
            throw error
        }
        try keeper.start()
        do {
            try await openStore()
            try await runUntilOver()
        } catch {
            engine.end(.abandoned)
            await engine.closeStore()
            throw error
        }
        engine.end(.abandoned)
        await engine.closeStore()
        if let failure = clientEnd.failure { throw failure }
    }

    private func openStore() async throws(StoreError) {
        guard let store = configuration.store else { return }
        defer { clientEnd.storeIsOpen.open(with: ()) }
        do throws(StoreError) {
            let content = try await store.content(for: nil)
            let limit = configuration.maximumStoredByteCount
            engine.use(
                SessionEngine.Store(store: store, peer: nil) { [clientEnd] in clientEnd.storeFailed($0) },
                try SessionMachine.Durability(store.id, content, byteLimit: limit)
            )
        } catch {
            engine.end(.storeDamaged(error))
            throw error
        }
    }

    /// Waits until durable messages can be stored.
    ///
    /// - Throws: `noStore`, `cancelled`.
    nonisolated(nonsending) func waitForStore() async throws(SessionError) {
        if configuration.store == nil { throw .noStore }
        do { try await clientEnd.storeIsOpen.wait() } catch { throw .cancelled }
    }

    private func runUntilOver() async throws {
        let shutdown = Latch<Void>()
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await runUntilClosed(closingAfter: shutdown)
            } onGracefulShutdown: {
                shutdown.open(with: ())
            }
        } onCancel: {
            engine.end(.abandoned)
        }
    }

    private func runUntilClosed(closingAfter shutdown: Latch<Void>) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                // Cancelled when the client has ended without a shutdown.
                guard (try? await shutdown.wait()) != nil else { return }
                await self.close()
            }
            defer { group.cancelAll() }
            try await keeper.run(for: clientEnd)
        }
    }

    /// Makes a new connection at once, as `Client.reconnect()` does. The session continues over it.
    public func reconnect() { keeper.reconnect() }

    /// Closes the session: takes no more calls and pushes, and waits, for at most
    /// `SessionClientConfiguration.closeTimeout`, until all accepted messages are processed and every call has ended.
    /// Then the session ends, and `run()` returns.
    ///
    /// Cancelling the task ends the session at once.
    public func close() async {
        await withTaskCancellationHandler {
            engine.close(within: configuration.closeTimeout)
            await engine.waitUntilEnded()
        } onCancel: {
            engine.end(.abandoned)
        }
        await keeper.close()
    }
}

extension SessionClient: Service {}

/// Runs a session's client, and `body` with it. See `SessionClient`.
///
/// When `body` returns, the session is closed as `SessionClient.close()` does; when it throws or the task is cancelled,
/// the session ends at once. When the call returns, no task of the client is left.
///
/// - Throws: what `body` and `SessionClient.run()` throw.
public nonisolated(nonsending) func withSessionClient<Result>(
    to endpoint: Endpoint,
    configuration: SessionClientConfiguration = SessionClientConfiguration(),
    interceptors: [any SessionClientInterceptor] = [],
    logger: Logger = Logger(label: "lifeline.session"),
    _ body: nonisolated(nonsending) (SessionClient) async throws -> Result
) async throws -> Result {
    let client = SessionClient(to: endpoint, configuration: configuration, interceptors: interceptors, logger: logger)
    // Cancelled and awaited when `body` throws.
    async let running: Void = client.run()
    let result = try await body(client)
    await client.close()
    try await running
    return result
}
