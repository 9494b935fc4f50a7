public import LifelineCore
public import LifelineMessages
public import Logging

/// Runs a server, and `body` with it once it listens. See `Server`.
///
/// When `body` returns, the server shuts down with the configuration's grace period, as `Server.shutdown(gracePeriod:)`
/// does. When it throws or the task is cancelled, the server shuts down at once. The call returns when all handlers
/// have returned: a handler that ignores cancellation delays it.
///
/// - Parameters:
///   - heartbeat: the messages that ask the peer for a sign of life, and answer such a request; they do not reach the
///     handler.
///   - logger: receives the events of single connections: see `Server.init`.
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
