public import LifelineCore
public import LifelineMessages
internal import LifelineRuntime
internal import LifelineTransport
public import Logging

/// Listens on an endpoint, runs `handler` for each connection, each in a task of its own, and `body` meanwhile.
///
/// Connections are spread over the process's event loops, one a core. When `handler` returns, its connection is closed
/// gracefully, as `withConnection` does; when it throws, the connection is cut, and the error and the peer are logged.
/// Other connections go on either way.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// says; when it throws or the task is cancelled, at once. The call returns when all handlers have: one that ignores
/// cancellation holds it up.
///
/// A Unix socket's file is removed at the end. One that a killed server left behind is replaced; one on which a server
/// answers is not.
///
/// - Parameters:
///   - heartbeat: which messages ask the peer for a sign of life, and answer it; they do not reach the handler. With nil,
///     the kernel's keepalive watches the peer (on a WebSocket, its pings do).
///   - logger: gets what happens to single connections. Errors of `accept`: `error`; connections that failed, and
///     certificates that cannot be loaded again: `warning`; the connection limit, and certificates that were: `notice`;
///     handshakes that failed: `info`. Of lines with one message, 100 in ten seconds are written; how many were left out,
///     the next one says, or a line at the end.
/// - Throws: `ConnectionError` when listening fails; what `body` throws.
public nonisolated(nonsending) func withServer<Received: DelimitedMessage, Sent: DelimitedMessage, Result>(
    listeningOn endpoint: Endpoint,
    configuration: ServerConfiguration = ServerConfiguration(),
    logger: Logger = Logger(label: "lifeline.server"),
    receiving: Received.Type,
    sending: Sent.Type,
    heartbeat: HeartbeatMessages<Received, Sent>? = nil,
    handler: @escaping @Sendable (Connection<Received, Sent>) async throws -> Void,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    // Not the configuration, which each connection's task would have room for.
    let (encoder, marks) = (
        configuration.connection.encoder(for: Sent.self), configuration.connection.outboundWaterMarks
    )
    return try await serving(
        on: endpoint,
        configuration: configuration,
        maximumFrameLength: configuration.connection.frameLimit(for: Received.self),
        hasHeartbeat: heartbeat?.ping != nil,
        carrying: CarriedTypes(receiving: Received.self, sending: Sent.self),
        logger: logger,
        makeReceiver: { MessageReceiver(configuration: configuration.connection, heartbeat: heartbeat) },
        serve: { opened in
            let connection = Connection<Received, Sent>(opened, encoder, outboundWaterMarks: marks)
            try await opened.connection.closing { try await handler(connection) }
        },
        body
    )
}

/// Listens on an endpoint, has `serve` serve each connection, in a task of its own, until it is closed, and runs `body`
/// meanwhile.
nonisolated(nonsending) func serving<Receiver: FrameReceiver, Result>(
    on endpoint: Endpoint,
    configuration: ServerConfiguration,
    maximumFrameLength: Int,
    hasHeartbeat: Bool,
    carrying types: CarriedTypes,
    logger: Logger,
    makeReceiver: @escaping @Sendable () -> Receiver,
    serve: @escaping @Sendable (OpenedConnection<Receiver.Inbox>) async throws -> Void,
    _ body: nonisolated(nonsending) (Server) async throws -> Result
) async throws -> Result {
    var options = configuration.connection.transportOptions(
        maximumFrameLength: maximumFrameLength,
        hasHeartbeat: hasHeartbeat || endpoint.isWebSocket,
        metrics: TransportMetrics(role: "server")
    )
    let log = LimitedLog.ofServer(logger) { .now() }
    defer { log.tellLeftOut() }
    options.layers = try configuration.layers(on: endpoint, carrying: types, logger: log.logger)
    options.memoryBudget = MemoryBudget(limit: configuration.memoryBudget)
    let listener = try await NIOTransport.shared.listen(
        on: endpoint,
        options: ListenerOptions(
            connection: options,
            maximumConnections: configuration.maximumConnections,
            closesSilentConnections: configuration.closesSilentConnections,
            backlog: configuration.backlog,
            logger: log.logger
        ),
        makeReceiver: makeReceiver
    )
    let server = Server(
        endpoint: listener.endpoint,
        shutdownOrder: configuration.shutdownOrder,
        certificates: options.layers.lazy.compactMap { ($0 as? TLSServerLayer)?.certificates }.first
    ) {
        await listener.stopAccepting()
    }
    let loop = ServerLoop(
        server: server,
        listener: listener,
        handlerExecutor: configuration.handlerExecutor,
        logger: log.logger,
        serve: serve
    )
    async let serving: Void = loop.run()
    do {
        let result = try await body(server)
        await server.shutdown(gracePeriod: configuration.shutdownGracePeriod)
        await serving
        return result
    } catch {
        // Handlers that have not begun need not begin.
        await listener.close()
        await server.shutdown(gracePeriod: .zero)
        await serving
        throw error
    }
}

/// The accept loop of a server and the tasks of its connections.
struct ServerLoop<Inbox: Sendable>: Sendable {
    let server: Server
    let listener: any TransportListener<Inbox>
    let handlerExecutor: HandlerExecutor
    let logger: Logger
    /// Returns when the connection is closed.
    let serve: @Sendable (OpenedConnection<Inbox>) async throws -> Void

    func run() async {
        // Where handlers run on loops, a connection of the loop that accepts goes to its handler without a switch of threads.
        await withTaskExecutorPreference(handlerExecutor.executor(of: listener)) { await accept() }
    }

    private func accept() async {
        await withDiscardingTaskGroup { group in
            do {
                while let opened = try await listener.nextConnection() {
                    // Not in the task, which may begin when a shutdown has found nobody to wait for.
                    let id = server.add(opened.connection)
                    let executor = handlerExecutor.executor(of: opened.connection)
                    group.addTask(executorPreference: executor) { await serve(opened, as: id) }
                }
            } catch {
                // Cancelled: the same as a shutdown without grace.
                await listener.close()
            }
            await server.drain()
            group.cancelAll()
        }
        server.finish()
    }

    private func serve(_ opened: OpenedConnection<Inbox>, as id: UInt64) async {
        do {
            try await serve(opened)
        } catch {
            log(error, of: opened.connection)
        }
        listener.releaseConnection()
        server.remove(id)
    }

    /// Never a part of the function that waits for the handler, whose task would have room for all of this meanwhile.
    @inline(never)
    private func log(_ error: any Error, of connection: any TransportConnection) {
        logger.warning(
            "A connection ended with an error",
            metadata: ["remote": "\(connection.remoteEndpoint)", "error": "\("\(error)".escaped())"]
        )
    }
}
