public import LifelineCore
public import LifelineMessages
package import LifelineRuntime
package import LifelineTransport
public import Logging
package import Metrics
public import ServiceLifecycle

/// A client whose connection stays alive: it notices when the connection or the network is gone, connects again, and
/// reports each step with its reason.
///
/// `run()` drives it. Meanwhile any task may send, one may iterate `messages`, and any number may follow `events`:
///
///     try await withClient(to: endpoint, receiving: Reply.self, sending: Request.self) { client in
///         try await client.send(request)
///         for try await reply in client.messages { print(reply) }
///     }
///
/// **Undelivered messages.** A message that `send` accepted is written to the connection of that moment. When that
/// connection is lost, its event counts the messages that did not reach the peer's system
/// (`ClientEvent.undeliveredMessageCount`). They are not sent again, because the peer may have seen a part of them.
/// Over TLS, WebSocket and through a proxy the count is nil, because there the acknowledged bytes are not those of the
/// messages.
public final class Client<Received: DelimitedMessage, Sent: DelimitedMessage>: Sendable {
    /// The endpoint that the client connects to.
    public let endpoint: Endpoint

    /// Runs tasks on the event loop of the client's connections, as `Connection.executor` does. It suits tasks that
    /// send and receive, and neither block nor compute for long.
    public var executor: any TaskExecutor { keeper.executor }

    let keeper: ConnectionKeeper
    let sends = WaitingSends()
    let inbox: ClientInbox<Received>
    let encoder: FrameEncoder
    private let configuration: ConnectionConfiguration
    private let heartbeat: HeartbeatMessages<Received, Sent>?
    private let intake: (any MessageIntake<Received>)?

    /// Makes a client that does nothing until it is run.
    ///
    /// - Parameters:
    ///   - heartbeat: the messages that ask the peer for a sign of life, and answer such a request. With nil, the
    ///     kernel's keepalive watches the peer (on a WebSocket, its pings do).
    ///   - logger: receives every step, with the connection's number, endpoint, state and reason. Lost and restored
    ///     connections are logged at `notice`, giving up at `error`, everything else at `debug`.
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
            framing: nil,
            logger: logger,
            environment: environment
        )
    }

    /// - Parameters:
    ///   - intake: takes messages out before they arrive.
    ///   - framing: the framing that the peer speaks, where the types alone do not say it.
    package init(
        to endpoint: Endpoint,
        configuration: ClientConfiguration,
        heartbeat: HeartbeatMessages<Received, Sent>?,
        intake: (any MessageIntake<Received>)?,
        framing: MessageFraming?,
        logger: Logger,
        environment: ClientEnvironment
    ) {
        self.heartbeat = heartbeat
        self.intake = intake
        self.endpoint = endpoint
        self.configuration = configuration.connection
        encoder = configuration.connection.encoder(for: Sent.self)
        let inbox = ClientInbox<Received>(marks: configuration.connection.inboundWaterMarks)
        self.inbox = inbox
        keeper = ConnectionKeeper(
            to: endpoint,
            configuration: configuration,
            carrying: CarriedTypes(receiving: Received.self, sending: Sent.self, framing: framing),
            maximumFrameLength: configuration.connection.frameLimit(for: Received.self),
            sendsPings: heartbeat?.ping != nil || endpoint.isWebSocket,
            sends: sends,
            environment: environment,
            logger: logger,
            whenPublished: { inbox.observerBell.ring() },
            whenFinished: { inbox.finish() }
        )
    }

    // MARK: Observing

    /// The state of the connection.
    public var state: ConnectionState { keeper.connectionState }

    /// Every step of the connection, for any number of subscribers. Each subscriber begins with the newest step.
    public var events: ClientEvents { ClientEvents(history: keeper.history) }

    /// The last 100 steps, the oldest first. Each prints as a line.
    public var history: [ClientEvent] { keeper.history.events }

    /// The messages that arrive, over all connections, in order.
    public var messages: ClientMessages<Received> { ClientMessages(inbox: inbox) }

    /// The number of messages that wait for a connection.
    public var queuedMessageCount: Int { keeper.queuedCount }

    // MARK: Running

    /// Connects, and keeps connected, until the client is closed or the task is cancelled. Cancelling cuts the
    /// connection at once. In a `ServiceGroup`, graceful shutdown closes the client; a `close()` after that waits for
    /// the same end.
    ///
    /// The client does all its work inside this call. A client runs once. The call returns at once when the client was
    /// closed before.
    ///
    /// - Throws: `CancellationError` when the task is cancelled. `ConnectionError` `alreadyRun` for a second call.
    public func run() async throws {
        try start()
        try await runToEnd()
    }

    package func start() throws(ConnectionError) { try keeper.start() }

    /// The part of `run()` after the start.
    package func runToEnd() async throws {
        try await withGracefulShutdownHandler {
            try await keeper.run(for: self)
        } onGracefulShutdown: { [keeper] in
            keeper.beginClose()
        }
    }

    /// Makes a new connection at once, and counts attempts from zero again. Use it after the client has given up, to
    /// skip the wait for the next attempt, or to replace an open connection, which is cut. While a connection is being
    /// made, or there is no network, the call changes nothing.
    public func reconnect() { keeper.reconnect() }

    /// Closes the client: takes no more messages, writes what `send` has accepted, ends this side, waits for the peer
    /// to end its side, and then for the peer's system to acknowledge everything. Returns when the client is closed.
    /// Sends that still wait fail with `closedLocally`.
    ///
    /// Writing goes on as long as the peer takes something within each `ConnectionConfiguration.closeTimeout`; each of
    /// the two waits after it lasts for that time at most.
    ///
    /// A second call, and cancelling the task, cut the connection at once. The first one joins a graceful shutdown that
    /// is under way. The last of `history` tells whether everything was delivered: its reason is `drained`, and its
    /// `undeliveredMessageCount` 0, when all was written, both sides have ended, and the peer's system has it all.
    public func close() async { await keeper.closeByUser() }

    /// Like `close()`, but joins a close that is under way instead of cutting the connection.
    package func closeInOrder() async { await keeper.close() }
}

extension Client: ConnectionUser {
    var receivedCount: Int { inbox.receivedCount }

    func connect(as id: ClientMachine.ConnectionID) async throws -> any TransportConnection {
        inbox.expect(id)
        // A peer that makes us reconnect again and again must not fill the inbox meanwhile.
        if inbox.queue.isPaused {
            keeper.logger.warning("Not connecting until messages that have arrived are taken; see Client.messages")
        }
        while inbox.queue.isPaused { try await inbox.waitForRoom() }
        let sink = ClientSink(id: id, inbox: inbox, intake: intake, keeper: keeper)
        return try await keeper.connect { [configuration, heartbeat] in
            MessageReceiver(configuration: configuration, heartbeat: heartbeat, sink: sink)
        }
    }

    func use(_ connection: any TransportConnection, as id: ClientMachine.ConnectionID) async {
        inbox.attach(connection)
        await sends.handOver(to: connection, as: id, keeper)
    }

    func ended(_ id: ClientMachine.ConnectionID) {
        // Also drops what came on a connection that was given up before it was reported.
        inbox.detach()
        intake?.connectionClosed(id)
    }
}

extension Client: Service {}

/// The surroundings of a client: network, clock and randomness. Tests replace them.
package struct ClientEnvironment: Sendable {
    package var transport: any Transport
    package var clock: any ClientClock
    package var network: any ClientNetwork
    /// The seed for the jitter of delays.
    package var seed: UInt64
    /// Nil for the factory of the process.
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

    /// The network of the simulated host on which the task runs; nil on the real host.
    @TaskLocal package static var simulatedNetwork: (any ClientNetwork)?

    /// Makes the environment of the host on which the task runs.
    package init(endpoint: Endpoint, configuration: ClientConfiguration) {
        // With a proxy, only the way to the proxy can be watched.
        let proxy = try? configuration.connection.proxyServer(for: endpoint)
        let nextHop = endpoint.at(proxy?.address ?? endpoint.address)
        let watched =
            configuration.watchesNetwork
            ? ClientEnvironment.simulatedNetwork ?? WatchedNetwork(endpoint: nextHop) : nil
        self.init(
            transport: NIOTransport.shared.onOneLoop(),
            clock: BootTimeClock(),
            network: watched ?? ConstantNetwork(),
            seed: .random(in: .min ... .max)
        )
    }
}
