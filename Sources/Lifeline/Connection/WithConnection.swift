public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// Connects to a server and runs `body` with the connection.
///
/// A name with several addresses is tried in the way of RFC 8305 (happy eyeballs). When `body` returns, everything that
/// `send` accepted is written, this side is ended, and the peer's end is awaited for `closeTimeout` at most; messages
/// that come meanwhile are dropped. When `body` throws or the task is cancelled, the connection is cut at once; over
/// TCP the peer sees a reset, so that it cannot take the cut for a regular end.
///
/// One call makes one connection: nothing reconnects.
///
/// - Parameter heartbeat: which messages ask the peer for a sign of life, and answer it; they do not reach `body`. With
///   nil, the kernel's keepalive watches the peer.
/// - Throws: `ConnectionError` when connecting fails, when the connection failed and `body` returned all the same, or
///   when accepted messages could not be written; what `body` throws; `CancellationError`.
public nonisolated(nonsending) func withConnection<Received: DelimitedMessage, Sent: DelimitedMessage, Result>(
    to endpoint: Endpoint,
    configuration: ConnectionConfiguration = ConnectionConfiguration(),
    receiving: Received.Type,
    sending: Sent.Type,
    heartbeat: HeartbeatMessages<Received, Sent>? = nil,
    _ body: nonisolated(nonsending) (Connection<Received, Sent>) async throws -> Result
) async throws -> Result {
    var options = configuration.transportOptions(
        maximumFrameLength: configuration.frameLimit(for: Received.self),
        hasHeartbeat: heartbeat?.ping != nil || endpoint.isWebSocket,
        metrics: TransportMetrics(role: "client")
    )
    options = try await configuration.addingLayersOffLoops(
        to: options,
        for: endpoint,
        carrying: CarriedTypes(receiving: Received.self, sending: Sent.self)
    )
    let opened = try await NIOTransport.shared.connect(to: endpoint, options: options) {
        MessageReceiver(configuration: configuration, heartbeat: heartbeat)
    }
    return try await Connection<Received, Sent>(opened, configuration: configuration).closing(after: body)
}
