public import LifelineCore
internal import LifelineProtos
package import LifelineRuntime
package import LifelineTransport
public import Logging

/// Listens on an endpoint, serves sessions on what connects there, and runs `body` meanwhile.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `SessionServer.shutdown(gracePeriod:)`
/// says; when it throws or the task is cancelled, at once. The call returns when all handlers have: one that ignores
/// cancellation holds it up.
///
/// - Parameters:
///   - services: what clients can ask for.
///   - interceptors: stand between sessions and handlers, the first one outermost.
///   - logger: gets what happens to connections, as `withServer` says. Handlers that failed, clients that broke the rules and
///     errors of `authenticate`: `warning`; clients that were refused: `info`. Of lines with one message, 5 in ten minutes are
///     written of each session, and 100 in ten seconds of all; how many were left out, the next one says, or a line at the
///     end of the session or of the server.
/// - Throws: `ConnectionError` when listening fails, or `invalidConfiguration` when two methods have one name; what `body`
///   throws.
public nonisolated(nonsending) func withSessionServer<Result>(
    listeningOn endpoint: Endpoint,
    configuration: SessionServerConfiguration = SessionServerConfiguration(),
    services: [any SessionService],
    interceptors: [any SessionServerInterceptor] = [],
    logger: Logger = Logger(label: "lifeline.session"),
    _ body: nonisolated(nonsending) (SessionServer) async throws -> Result
) async throws -> Result {
    try await withSessionServer(
        listeningOn: [endpoint],
        configuration: configuration,
        services: services,
        interceptors: interceptors,
        logger: logger,
        body
    )
}

/// The same on several endpoints: a client may go on with its session at another one than before.
public nonisolated(nonsending) func withSessionServer<Result>(
    listeningOn endpoints: [Endpoint],
    configuration: SessionServerConfiguration = SessionServerConfiguration(),
    services: [any SessionService],
    interceptors: [any SessionServerInterceptor] = [],
    logger: Logger = Logger(label: "lifeline.session"),
    _ body: nonisolated(nonsending) (SessionServer) async throws -> Result
) async throws -> Result {
    try await withSessionServer(
        listeningOn: endpoints,
        configuration: configuration,
        services: services,
        interceptors: interceptors,
        logger: logger,
        transport: NIOTransport.shared,
        clock: BootTimeClock(),
        body
    )
}

package nonisolated(nonsending) func withSessionServer<Result>(
    listeningOn endpoints: [Endpoint],
    configuration: SessionServerConfiguration,
    services: [any SessionService],
    interceptors: [any SessionServerInterceptor],
    logger: Logger,
    transport: any Transport,
    clock: any ClientClock,
    _ body: nonisolated(nonsending) (SessionServer) async throws -> Result
) async throws -> Result {
    let methods = try SessionMethods(services)
    let log = LimitedLog.ofServer(logger) { clock.now }
    defer { log.tellLeftOut() }
    let memoryBudget = MemoryBudget(limit: configuration.server.memoryBudget)
    let open = try await listen(on: endpoints, configuration.server, memoryBudget, log.logger, transport)
    let listeners = open.map(\.listener)
    let server = SessionServer(
        boundEndpoints: listeners.map(\.boundEndpoint),
        configuration: configuration,
        methods: methods,
        interceptors: interceptors,
        clock: clock,
        logger: log.logger,
        certificates: open.compactMap(\.certificates)
    ) {
        for listener in listeners { await listener.stopAccepting() }
    }
    async let serving: Void = serve(server, listeners)
    do {
        let result = try await body(server)
        await server.shutdown(gracePeriod: configuration.server.shutdownGracePeriod)
        await serving
        return result
    } catch {
        for listener in listeners { await listener.close() }
        await server.shutdown(gracePeriod: .zero)
        await serving
        throw error
    }
}

private typealias Listener = any TransportListener<SessionServerIntake>

private typealias OpenListener = (listener: Listener, certificates: ServerCertificates?)

private func listen(
    on endpoints: [Endpoint],
    _ configuration: ServerConfiguration,
    _ memoryBudget: MemoryBudget,
    _ logger: Logger,
    _ transport: any Transport
) async throws -> [OpenListener] {
    var listeners: [OpenListener] = []
    do {
        for endpoint in endpoints {
            listeners.append(try await listen(on: endpoint, configuration, memoryBudget, logger, transport))
        }
        return listeners
    } catch {
        for (listener, _) in listeners { await listener.close() }
        throw error
    }
}

private func listen(
    on endpoint: Endpoint,
    _ configuration: ServerConfiguration,
    _ memoryBudget: MemoryBudget,
    _ logger: Logger,
    _ transport: any Transport
) async throws -> OpenListener {
    typealias Frame = Lifeline_Session_V1_Frame
    var options = configuration.connection.transportOptions(
        maximumFrameLength: configuration.connection.frameLimit(for: Frame.self),
        hasHeartbeat: true,
        metrics: TransportMetrics(role: "server")
    )
    options.layers = try configuration.layers(
        on: endpoint,
        carrying: CarriedTypes(receiving: Frame.self, sending: Frame.self),
        logger: logger
    )
    options.openingFrameLimit = SessionServerIntake.openingFrameLimit
    options.memoryBudget = memoryBudget
    let listener = try await transport.listen(
        on: endpoint,
        options: ListenerOptions(
            connection: options,
            maximumConnections: configuration.maximumConnections,
            closesSilentConnections: configuration.closesSilentConnections,
            backlog: configuration.backlog,
            logger: logger
        )
    ) {
        SessionReceiver(configuration: configuration.connection)
    }
    return (listener, options.layers.lazy.compactMap { ($0 as? TLSServerLayer)?.certificates }.first)
}

/// Accepts on all listeners until they have stopped, and stays until all connections are closed.
private func serve(_ server: SessionServer, _ listeners: [Listener]) async {
    await withDiscardingTaskGroup { group in
        for listener in listeners {
            group.addTask {
                await withDiscardingTaskGroup { connections in
                    do {
                        while let opened = try await listener.nextConnection() {
                            connections.addTask {
                                await server.serve(opened)
                                listener.releaseConnection()
                            }
                        }
                    } catch {
                        // Cancelled: whoever cancelled shuts the server down.
                        await listener.close()
                    }
                }
            }
        }
    }
}
