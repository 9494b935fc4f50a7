public import LifelineCore
package import LifelineRuntime
package import LifelineTransport
public import Logging

/// Runs a server of sessions, and calls `body` with it once it listens. See `SessionServer`.
///
/// When `body` returns, the server shuts down with the grace period of the configuration, as
/// `SessionServer.shutdown(gracePeriod:)` does. When `body` throws or the task is cancelled, it shuts down at once.
/// This function returns when all handlers have returned, so a handler that ignores cancellation delays it.
///
/// - Parameters:
///   - services: the methods that clients can call.
///   - interceptors: run between sessions and handlers, the first one outermost.
///   - logger: receives lines about connections, sessions and handlers, as `SessionServer.init` says.
/// - Throws: `ConnectionError` when listening fails, or `invalidConfiguration` as `SessionServer.init` says; also any
///   error of `body`.
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

/// Runs a server with several endpoints. A client may resume its session at another endpoint than before.
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

/// Runs a server over the transport of a test.
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
