public import LifelineCore
public import LifelineMessages
internal import LifelineTransport

/// Connects to a server and runs `body` with the connection.
///
/// The addresses of a name are tried as RFC 8305 (happy eyeballs) describes. When `body` returns, everything that
/// `send` accepted is written, this side ends, and the call waits for at most `closeTimeout` until the peer ends its
/// side; messages that arrive meanwhile are dropped. When `body` throws or the task is cancelled, the connection is cut
/// at once. Over TCP the peer sees a reset, which it cannot mistake for a regular end.
///
/// One call makes one connection. It never reconnects.
///
/// - Parameter heartbeat: the messages that ask the peer for a sign of life, and answer such a request; they do not
///   reach `body`. With nil, the kernel's keepalive watches the peer.
/// - Throws: `ConnectionError` when connecting fails, when the connection failed although `body` returned, or when
///   accepted messages could not be written; what `body` throws; `CancellationError`.
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
