public import LifelineCore
internal import LifelineTransport

/// Connects to a server, has `makeHandler`'s handler take the frames that come, and runs `body` with the connection.
///
/// How it connects, and how it closes when `body` returns or throws, is as `withConnection` does it; `heartbeat`
/// messages there are none. When no more frames come, `body` is not told but by `FrameConnection.waitUntilEnded()` and
/// the handler.
///
/// - Parameter makeHandler: called once, on the connection's event loop, when the connection stands and nothing was
///   read.
/// - Throws: `ConnectionError` when connecting fails, when the connection failed and `body` returned all the same, or
///   when what was accepted could not be written; what `body` throws; `CancellationError`.
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
