public import LifelineCore
package import LifelineRuntime
package import LifelineTransport
public import Logging

/// Runs a server of sessions, and `body` with it once it listens; `SessionServer` says what it does.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as
/// `SessionServer.shutdown(gracePeriod:)` says; when it throws or the task is cancelled, at once. The call returns when
/// all handlers have: one that ignores cancellation holds it up.
///
/// - Parameters:
///   - services: what clients can ask for.
///   - interceptors: stand between sessions and handlers, the first one outermost.
///   - logger: gets what happens to connections, sessions and handlers, as `SessionServer.init` says.
/// - Throws: `ConnectionError` when listening fails, or `invalidConfiguration` as `SessionServer.init` says; what
///   `body` throws.
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
    let server = try SessionServer(
        listeningOn: endpoints,
        configuration: configuration,
        services: services,
        interceptors: interceptors,
        logger: logger
    )
    return try await server.lifecycle.withRunning(server, body)
}

/// The same over a transport of a test's.
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
    let server = try SessionServer(
        listeningOn: endpoints,
        configuration: configuration,
        services: services,
        interceptors: interceptors,
        logger: logger,
        transport: transport,
        clock: clock
    )
    return try await server.lifecycle.withRunning(server, body)
}
