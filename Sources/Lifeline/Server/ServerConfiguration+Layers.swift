internal import LifelineCore
internal import LifelineTransport
internal import Logging

extension ServerConfiguration {
    /// Returns the layers between the socket and the frames of connections accepted on `endpoint`.
    ///
    /// - Throws: `ConnectionError` when the configuration cannot be used.
    func layers(
        on endpoint: Endpoint,
        carrying types: CarriedTypes,
        logger: Logger
    ) throws(ConnectionError) -> [any ChannelLayer] {
        if let refusal = types.refusal { throw refusal }
        var layers: [any ChannelLayer] = []
        if endpoint.isEncrypted {
            guard let tls else {
                throw ConnectionError(
                    code: .invalidConfiguration,
                    message: "\(endpoint) needs a certificate. Set ServerConfiguration.tls."
                )
            }
            layers.append(try TLSServerLayer(tls, logger: logger))
        }
        if endpoint.isWebSocket {
            let handshake = try WebSocketServerHandshake(on: endpoint, configuration: webSocket)
            layers.append(WebSocketLayer(.server(handshake), options: connection.webSocketOptions(carrying: types)))
        }
        if let framing = types.framing {
            layers.append(framing.layer(connection.maximumFrameLength))
        }
        return layers
    }

    /// Returns the options for listening for connections with `options`.
    func listenerOptions(connection options: ConnectionOptions, logger: Logger) -> ListenerOptions {
        ListenerOptions(
            connection: options,
            maximumConnections: maximumConnections,
            closesSilentConnections: closesSilentConnections,
            backlog: backlog,
            logger: logger
        )
    }
}
