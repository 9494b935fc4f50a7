public import LifelineCore
public import LifelineMessages
package import LifelineRuntime
package import LifelineTransport
public import Logging
package import Metrics
public import ServiceLifecycle

/// A client whose connection stays alive: it notices when the connection or the network is gone, connects again, and says
/// what it does and why.
///
/// `run()` drives it. Meanwhile any task may send, one may iterate `messages`, and any number may follow `events`:
///
///     try await withClient(to: endpoint, receiving: Reply.self, sending: Request.self) { client in
///         try await client.send(request)
///         for try await reply in client.messages { print(reply) }
///     }
///
/// **What is known of a message.** A message that `send` accepted is written to the connection of that moment. When that
/// connection is lost, the event that tells of it counts the messages that did not reach the peer's system
/// (`ClientEvent.undeliveredMessageCount`); they are not sent again, as the peer may have seen a part of them. Over
/// TLS, WebSocket and through a proxy the count is nil: what is acknowledged there are not the messages' own bytes.
public final class Client<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    /// Where it connects to.
    public let endpoint: Endpoint

    /// Runs tasks on the event loop of the client's connections, as `Connection.executor` does: for tasks that send and wait
    /// for what comes, and neither block nor compute for long.
    public var executor: any TaskExecutor { environment.transport.executor ?? globalConcurrentExecutor }

    let driver: ClientDriver
    let inbox: ClientInbox<Received>
    let encoder: FrameEncoder
    private let configuration: ConnectionConfiguration
    private let options: ConnectionOptions
    private let layers: ClientLayers
    private let heartbeat: HeartbeatMessages<Received, Sent>?
    private let intake: (any MessageIntake<Received>)?
    private let environment: ClientEnvironment
    private let logger: Logger

    /// Makes a client that does nothing until it is run.
    ///
    /// - Parameters:
    ///   - heartbeat: which messages ask the peer for a sign of life, and answer it. With nil, the kernel's keepalive
    ///     watches the peer (on a WebSocket, its pings do).
    ///   - logger: gets every step, with the connection's number, endpoint, state and reason. Connections that are lost and
    ///     come back: `notice`; giving up: `error`; all else: `debug`.
    public convenience init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration = ClientConfiguration(),
        receiving: Received.Type,
        sending: Sent.Type,
        heartbeat: HeartbeatMessages<Received, Sent>? = nil,
        logger: Logger = Logger(label: "lifeline.client")
    ) {
        self.init(
            to: endpoint,
            configuration: configuration,
            receiving: receiving,
            sending: sending,
            heartbeat: heartbeat,
            logger: logger,
            environment: ClientEnvironment(endpoint: endpoint, configuration: configuration)
        )
    }

    package convenience init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        receiving: Received.Type,
        sending: Sent.Type,
        heartbeat: HeartbeatMessages<Received, Sent>?,
        logger: Logger,
        environment: ClientEnvironment
    ) {
        self.init(
            to: endpoint,
            configuration: configuration,
            heartbeat: heartbeat,
            intake: nil,
            observer: nil,
            logger: logger,
            environment: environment
        )
    }

    /// - Parameters:
    ///   - intake: what takes messages out before they arrive.
    ///   - observer: what learns which requests are written, in a framing that has some.
    init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        heartbeat: HeartbeatMessages<Received, Sent>?,
        intake: (any MessageIntake<Received>)?,
        observer: (any RequestObserver)?,
        logger: Logger,
        environment: ClientEnvironment
    ) {
        self.heartbeat = heartbeat
        self.intake = intake
        self.endpoint = endpoint
        self.configuration = configuration.connection
        self.environment = environment
        var logger = logger
        logger[metadataKey: "endpoint"] = "\(endpoint)"
        self.logger = logger
        let observerBell = Doorbell()
        let inbox = ClientInbox<Received>(
            marks: configuration.connection.inboundWaterMarks,
            observerBell: observerBell
        )
        self.inbox = inbox
        encoder = configuration.connection.encoder(for: Sent.self)
        let metricsFactory = environment.metricsFactory ?? MetricsSystem.factory
        let asksForLife = heartbeat?.ping != nil || endpoint.isWebSocket
        options = configuration.connection.transportOptions(
            maximumFrameLength: configuration.connection.frameLimit(for: Received.self),
            hasHeartbeat: asksForLife,
            tracksDelivery: true,
            metrics: TransportMetrics(role: "client", factory: metricsFactory)
        )
        layers = ClientLayers(
            configuration.connection,
            endpoint: endpoint,
            carrying: CarriedTypes(receiving: Received.self, sending: Sent.self, observer: observer)
        )
        driver = ClientDriver(
            configuration: configuration,
            sleepWatchInterval: asksForLife ? configuration.connection.heartbeat.interval : nil,
            clock: environment.clock,
            metrics: ClientMetrics(factory: metricsFactory),
            seed: environment.seed,
            hasNetwork: environment.network.isAvailableAtFirst,
            observerBell: observerBell,
            finishInbox: { inbox.finish() }
        )
    }

    // MARK: Observing

    /// Where the connection stands.
    public var state: ConnectionState { driver.connectionState }

    /// Every step of the connection, for any number of subscribers, each from the newest one on.
    public var events: ClientEvents { ClientEvents(history: driver.history) }

    /// The last 100 steps, the oldest first. Each prints as a line.
    public var history: [ClientEvent] { driver.history.events }

    /// The messages that arrive, over all connections, in order.
    public var messages: ClientMessages<Received> { ClientMessages(inbox: inbox) }

    /// How many messages wait for a connection.
    public var queuedMessageCount: Int { driver.queuedCount }

    // MARK: Running

    /// Connects, and keeps connected, until the client is closed or the task is cancelled. Cancelling cuts the connection at
    /// once. In a `ServiceGroup`, graceful shutdown closes the client; a `close()` after that waits for the same end.
    ///
    /// Everything that the client does, it does inside this call. A client runs once; one that was closed before returns at
    /// once.
    ///
    /// - Throws: `CancellationError` when the task is cancelled. `ConnectionError` `alreadyRun` for a second call.
    public func run() async throws {
        try start()
        try await runToEnd()
    }

    func start() throws(ConnectionError) {
        guard driver.start() else { throw ConnectionError.alreadyRun }
    }

    /// What follows the start.
    func runToEnd() async throws {
        try await withGracefulShutdownHandler {
            try await runUntilClosed()
        } onGracefulShutdown: { [driver] in
            driver.requestClose()
        }
    }

    /// The same where somebody else closes it on graceful shutdown.
    func runUntilClosed() async throws {
        await withTaskCancellationHandler {
            await drive()
        } onCancel: {
            driver.cancel()
        }
        try Task.checkCancellation()
    }

    /// Makes a new connection at once, with all attempts to be had again: after giving up, instead of waiting for the
    /// next attempt, or in place of a connection that stands, which is cut. While one is being made, or there is no network
    /// to make one over, nothing changes.
    public func reconnect() {
        driver.requestReconnect()
    }

    /// Closes: takes no more messages, writes what `send` has accepted, ends this side, and waits for the peer's end, and
    /// then for its system to acknowledge everything. Returns when it is closed. Sends that still wait fail with
    /// `closedLocally`.
    ///
    /// Writing goes on as long as the peer takes something within each `ConnectionConfiguration.closeTimeout`; each of the
    /// two waits after it lasts for that time at most.
    ///
    /// A second call, and cancelling the task, cut the connection at once. The first one joins a graceful shutdown that is
    /// under way. The last of `history` tells whether everything was delivered: its reason is `drained`, and its
    /// `undeliveredMessageCount` 0, when all was written, both sides have ended, and the peer's system has it all.
    public func close() async {
        await waitUntilClosed { driver.requestCloseByUser() }
    }

    /// Like `close()`, but it joins a close that is under way instead of cutting.
    func closeOrJoin() async {
        await waitUntilClosed { driver.requestClose() }
    }

    private func waitUntilClosed(afterRequesting request: () -> Void) async {
        await withTaskCancellationHandler {
            request()
            await driver.closed.waitUninterrupted()
        } onCancel: {
            driver.requestCut()
        }
    }

    private func drive() async {
        await withTaskGroup { group in
            group.addTask { await self.environment.network.watch { self.driver.networkChanged($0) } }
            group.addTask { await self.driver.keepTime() }
            group.addTask {
                var log = TransitionLogger(events: self.events, logger: self.logger)
                await log.run()
            }
            await driver.runLoop(serve)
            driver.finish()
            group.cancelAll()
        }
    }

    private func serve(_ attempt: ClientDriver.Attempt) async {
        let (driver, inbox, endpoint, heartbeat, intake) = (driver, inbox, endpoint, heartbeat, intake)
        let (transport, options, layers, configuration) = (environment.transport, options, layers, configuration)
        await driver.serve(attempt, inbox: inbox) { [logger] in
            logger.warning("Not connecting until messages that have arrived are taken; see Client.messages")
        } whenReady: {
            intake?.connectionReady($0, as: attempt.id)
        } connect: {
            try await intake?.waitToConnect()
            return try await transport.connect(to: endpoint, options: layers.added(to: options)) {
                ClientReceiver(
                    MessageReceiver(
                        configuration: configuration,
                        heartbeat: heartbeat,
                        intake: intake,
                        inbox: inbox.queue
                    ) {
                        inbox.receive($0, cost: $1, from: attempt.id)
                    },
                    inbox: inbox,
                    inputEnded: {
                        let reason = driver.reasonOfInputEnd
                        driver.inputEnded(attempt.id)
                        return reason
                    }
                )
            }.connection
        }
        intake?.connectionClosed(attempt.id)
    }
}

extension Client: Service {}

/// What a client stands on: replaced by tests.
package struct ClientEnvironment: Sendable {
    package var transport: any Transport
    package var clock: any ClientClock
    package var network: any ClientNetwork
    /// What the jitter of delays follows from.
    package var seed: UInt64
    /// Nil: the process's.
    package var metricsFactory: (any MetricsFactory)?

    package init(
        transport: any Transport,
        clock: any ClientClock,
        network: any ClientNetwork,
        seed: UInt64,
        metricsFactory: (any MetricsFactory)? = nil
    ) {
        self.transport = transport
        self.clock = clock
        self.network = network
        self.seed = seed
        self.metricsFactory = metricsFactory
    }

    /// The real one.
    init(endpoint: Endpoint, configuration: ClientConfiguration) {
        // Of the way on from a proxy nothing is known here.
        let proxy = try? configuration.connection.proxyServer(for: endpoint)
        let nextHop = endpoint.at(proxy?.address ?? endpoint.address)
        let watched = configuration.watchesNetwork ? WatchedNetwork(endpoint: nextHop) : nil
        self.init(
            transport: NIOTransport.shared.onOneLoop(),
            clock: BootTimeClock(),
            network: watched ?? ConstantNetwork(),
            seed: .random(in: .min ... .max)
        )
    }
}

extension ConnectionError {
    fileprivate static var alreadyRun: ConnectionError {
        ConnectionError(
            code: .alreadyRun,
            message: "A client runs once, and this one has begun already. Make another one to run again."
        )
    }
}
