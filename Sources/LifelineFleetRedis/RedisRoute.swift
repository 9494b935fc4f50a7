internal import LifelineCore
internal import LifelineTransport
internal import NIOCore

/// The way of a client's connections to the server.
struct RedisRoute: Sendable {
    let transport: NIOTransport
    let limits: RedisReplyLimits
    private let endpoint: Endpoint
    private let layers: [any ChannelLayer]
    private let timeout: Duration

    /// Reads the files of the TLS configuration, so do not call it on an event loop.
    ///
    /// - Throws: `invalidConfiguration`.
    init(_ configuration: RedisConfiguration) throws(RedisError) {
        transport = NIOTransport.shared.onOneLoop()
        limits = configuration.replyLimits
        endpoint = configuration.endpoint
        timeout = configuration.connectTimeout.clamped(atLeast: .milliseconds(1))
        guard !endpoint.isWebSocket else {
            throw RedisError(code: .invalidConfiguration, message: "Redis has no WebSocket. Use tcp, tls or unix.")
        }
        do throws(ConnectionError) {
            layers =
                if endpoint.isEncrypted, case .tcp(let host, _) = endpoint.address {
                    [try TLSClientLayer(configuration.tls, host: host)]
                } else {
                    []
                }
        } catch {
            throw RedisError(
                code: .invalidConfiguration,
                message: "RedisConfiguration.tls cannot be used.",
                cause: error
            )
        }
    }

    /// - Parameter addHandlers: called on the loop when the connection is open, before anything is read.
    /// - Throws: `ConnectionError`, `CancellationError`.
    func connect(_ addHandlers: @escaping @Sendable (any Channel) throws -> Void) async throws {
        try await transport.openChannel(
            to: endpoint,
            layers: layers,
            keepalive: KeepaliveConfiguration(),
            timeout: timeout,
            addHandlers: addHandlers
        )
    }
}
