public import LifelineCore
internal import LifelineTransport

/// Connects to a server, passes received frames to a handler, and runs `body` with the connection.
///
/// It connects and closes as `withConnection` does, but has no heartbeat messages. `body` learns that no more frames
/// come from `FrameConnection.waitUntilEnded()` or from the handler.
///
/// - Parameter makeHandler: called once, on the connection's event loop, when the connection is open and before it is
///   read.
/// - Throws: `ConnectionError` when connecting fails, when the connection failed although `body` returned, or when
///   accepted frames could not be written; what `body` throws; `CancellationError`.
public nonisolated(nonsending) func withFrameConnection<Handler: FrameHandler & ~Copyable, Result>(
    to endpoint: Endpoint,
    configuration: ConnectionConfiguration = ConnectionConfiguration(),
    handler makeHandler: @escaping @Sendable (FrameConnection) -> Handler,
    _ body: nonisolated(nonsending) (FrameConnection) async throws -> Result
) async throws -> Result {
    let limit = configuration.maximumFrameLength
    var options = configuration.transportOptions(
        maximumFrameLength: limit,
        hasHeartbeat: endpoint.isWebSocket,
        metrics: TransportMetrics(role: "client")
    )
    options = try await configuration.addingLayersOffLoops(to: options, for: endpoint, carrying: .delimited)
    let opened = try await NIOTransport.shared.connect(to: endpoint, options: options) {
        FrameHandlerReceiver(maximumFrameLength: limit, makeHandler: makeHandler)
    }
    let connection = FrameConnection(
        transport: opened.connection,
        inputEnded: opened.inbox,
        encoder: FrameEncoder(maximumFrameLength: limit)
    )
    return try await opened.connection.closing { try await body(connection) }
}
