public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
public import Logging
internal import NIOConcurrencyHelpers
public import ServiceLifecycle

/// A server of connections: listens on an endpoint, and runs a handler for each connection, in its own task.
///
/// `run()` drives it. Run it in a `ServiceGroup` of swift-service-lifecycle: graceful shutdown drains the server.
///
///     let server = Server(listeningOn: endpoint, receiving: Request.self, sending: Reply.self) { connection in
///         for try await request in connection.messages { try await connection.send(answer(to: request)) }
///     }
///     try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
///
/// `withServer` runs a server for the duration of a function, and `withFrameServer` a server of frames.
///
/// Connections are spread over the process's event loops, one a core. When the handler returns, its connection is
/// closed gracefully, as `withConnection` does; when it throws, the connection is cut, and the error and the peer are
/// logged. Other connections go on either way.
///
/// The file of a Unix socket is removed at the end. A file that a killed server left behind is replaced; a file on
/// which a server answers is not.
public final class Server: Sendable {
    let lifecycle: ServerLifecycle
    private let certificates = NIOLockedValueBox<ServerCertificates?>(nil)
    /// Listens, and serves to the end.
    private let runToEnd: @Sendable (Server) async throws -> Void

    /// Makes a server that does nothing until it is run.
    ///
    /// - Parameters:
    ///   - heartbeat: the messages that ask the peer for a sign of life, and answer such a request; they do not reach
    ///     the handler. With nil, the kernel's keepalive watches the peer (on a WebSocket, its pings do).
    ///   - logger: receives the events of single connections. Errors of `accept` are logged at `error`; failed
    ///     connections, and certificates that cannot be reloaded, at `warning`; the connection limit, and reloaded
    ///     certificates, at `notice`; failed handshakes at `info`. At most 100 lines with the same message are written
    ///     in ten seconds. The next such line, or a line at the end, has the number of left-out lines.
    ///   - handler: called for each connection.
    public convenience init<Received: DelimitedMessage, Sent: DelimitedMessage>(
        listeningOn endpoint: Endpoint,
        configuration: ServerConfiguration = ServerConfiguration(),
        logger: Logger = Logger(label: "lifeline.server"),
        receiving: Received.Type,
        sending: Sent.Type,
        heartbeat: HeartbeatMessages<Received, Sent>? = nil,
        handler: @escaping @Sendable (Connection<Received, Sent>) async throws -> Void
    ) {
        // Captures these and not the whole configuration, which would take room in each connection's task.
        let (encoder, marks) = (
            configuration.connection.encoder(for: Sent.self), configuration.connection.outboundWaterMarks
        )
        self.init(
            listeningOn: endpoint,
            configuration: configuration,
            maximumFrameLength: configuration.connection.frameLimit(for: Received.self),
            hasHeartbeat: heartbeat?.ping != nil,
            carrying: CarriedTypes(receiving: Received.self, sending: Sent.self),
            logger: logger,
            makeReceiver: { MessageReceiver(configuration: configuration.connection, heartbeat: heartbeat) },
            serve: { opened in
                let connection = Connection<Received, Sent>(opened, encoder, outboundWaterMarks: marks)
                try await opened.connection.closing { try await handler(connection) }
            }
        )
    }

    /// - Parameter serve: handles a connection. Returns when it is closed.
    init<Receiver: FrameReceiver>(
        listeningOn endpoint: Endpoint,
        configuration: ServerConfiguration,
        maximumFrameLength: Int,
        hasHeartbeat: Bool,
        carrying types: CarriedTypes,
        logger: Logger,
        makeReceiver: @escaping @Sendable () -> Receiver,
        serve: @escaping @Sendable (OpenedConnection<Receiver.Inbox>) async throws -> Void
    ) {
        let lifecycle = ServerLifecycle(gracePeriod: configuration.shutdownGracePeriod, clock: BootTimeClock())
        self.lifecycle = lifecycle
        runToEnd = { server in
            let log = LimitedLog.ofServer(logger) { lifecycle.clock.now }
            defer { log.logLeftOutCounts() }
            try await lifecycle.run { () -> [any TransportListener<Receiver.Inbox>] in
                var options = configuration.connection.transportOptions(
                    maximumFrameLength: maximumFrameLength,
                    hasHeartbeat: hasHeartbeat || endpoint.isWebSocket,
                    metrics: TransportMetrics(role: "server")
                )
                options.layers = try configuration.layers(on: endpoint, carrying: types, logger: log.logger)
                options.memoryBudget = MemoryBudget(limit: configuration.memoryBudget)
                let certificates = options.layers.lazy.compactMap { ($0 as? TLSServerLayer)?.certificates }.first
                server.certificates.withLockedValue { $0 = certificates }
                return [
                    try await NIOTransport.shared.listen(
                        on: endpoint,
                        options: configuration.listenerOptions(connection: options, logger: log.logger),
                        makeReceiver: makeReceiver
                    )
                ]
            } serve: { listeners in
                let loop = ServerLoop(
                    listener: listeners[0],
                    lifecycle: lifecycle,
                    shutdownOrder: configuration.shutdownOrder,
                    handlerExecutor: configuration.handlerExecutor,
                    logger: log.logger,
                    serve: serve
                )
                await loop.run()
            }
        }
    }

    /// The endpoint on which the server listens, with the real port when 0 was asked for. Waits until the server
    /// listens.
    ///
    /// - Throws: `ConnectionError` when it cannot listen; `closedLocally` when it was shut down before it was run.
    ///   `CancellationError`.
    public var boundEndpoint: Endpoint {
        get async throws { try await lifecycle.boundEndpoints[0] }
    }

    // MARK: Running

    /// Listens, and serves connections until the server is shut down or the task is cancelled. In a `ServiceGroup`,
    /// graceful shutdown does what `shutdown(gracePeriod:)` does with `ServerConfiguration.shutdownGracePeriod`.
    /// Cancelling cuts all connections at once, and cancels their handlers.
    ///
    /// Returns when all handlers have returned: a handler that ignores cancellation delays it. A server runs once. The
    /// call returns at once when the server was shut down before.
    ///
    /// - Throws: `ConnectionError` when listening fails, `alreadyRun` for a second call. `CancellationError` when the
    ///   task is cancelled.
    public func run() async throws {
        try await runToEnd(self)
    }

    /// Shuts the server down, within `gracePeriod`:
    ///
    /// 1. The server stops accepting.
    /// 2. In the order of `ServerConfiguration.shutdownOrder`, it ends either the handlers' message sequences after the
    ///    messages that have arrived, or this side of their connections after the messages that were accepted. As long
    ///    as this side is open, it answers the peers' pings.
    /// 3. Each handler finishes and returns. Messages that its connection has accepted are written, and this side ends.
    ///    Received bytes are read and dropped until the peer has ended its side, or
    ///    `ConnectionConfiguration.closeTimeout` is over.
    /// 4. At the end of the grace period, connections that are left are cut with a reset, and their handlers are
    ///    cancelled.
    ///
    /// Returns when all handlers have returned, or the task is cancelled. A further call can only bring the end of the
    /// grace period forward.
    public func shutdown(gracePeriod: Duration) async {
        await lifecycle.shutdown(gracePeriod: gracePeriod)
    }

    /// Waits until the server has shut down. Use it as the body of `withServer` for a server that runs until its task
    /// is cancelled.
    ///
    /// - Throws: `CancellationError`.
    public func waitUntilShutDown() async throws {
        try await lifecycle.waitUntilShutDown()
    }

    /// Loads the files of `ServerConfiguration.tls` again, for connections that are accepted from now on. Open
    /// connections go on. The call does nothing on a server without TLS, or one that does not run yet.
    ///
    /// - Throws: `ConnectionError` `invalidConfiguration` when the files cannot be used; those loaded before stay in
    ///   use.
    public func reloadCertificate() async throws(ConnectionError) {
        try await certificates.withLockedValue { $0 }?.reload()
    }
}

extension Server: Service {}
