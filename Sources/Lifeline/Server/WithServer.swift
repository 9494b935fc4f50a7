public import LifelineCore
public import LifelineMessages
public import Logging

/// Runs a server, and `body` with it once it listens; `Server` says what it does.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// says; when it throws or the task is cancelled, at once. The call returns when all handlers have: one that ignores
/// cancellation holds it up.
///
/// - Parameters:
///   - heartbeat: which messages ask the peer for a sign of life, and answer it; they do not reach the handler.
///   - logger: gets what happens to single connections, as `Server.init` says.
///   - handler: called for each connection.
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
    let server = Server(
        listeningOn: endpoint,
        configuration: configuration,
        logger: logger,
        receiving: receiving,
        sending: sending,
        heartbeat: heartbeat,
        handler: handler
    )
    return try await server.lifecycle.withRunning(server, body)
}
