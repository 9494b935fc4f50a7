internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport

extension ConnectionConfiguration {
    /// What lies between the socket and the frames of connections to `endpoint`, from the socket on. To be made once for all
    /// connections to it.
    ///
    /// - Throws: `ConnectionError`: what is configured cannot be.
    func layers(to endpoint: Endpoint, carrying types: CarriedTypes) throws(ConnectionError) -> [any ChannelLayer] {
        var layers: [any ChannelLayer] = []
        if endpoint.isWebSocket {
            let request = try WebSocketRequest(to: endpoint, configuration: webSocket)
            layers.append(WebSocketLayer(.client(request), options: webSocketOptions(carrying: types)))
        }
        return layers
    }

    fileprivate func webSocketOptions(carrying types: CarriedTypes) -> WebSocketLayer.Options {
        let frameLimit = max(0, maximumFrameLength)
        let fallback = max(64 << 10, types.receivesMessages ? frameLimit : frameLimit + Varint.maximumLength)
        let limit = max(0, webSocket.maximumReceivedMessageLength ?? fallback)
        return WebSocketLayer.Options(
            receivesMessages: types.receivesMessages,
            sendsMessages: types.sendsMessages,
            maximumMessageLength: max(1, webSocket.maximumMessageLength),
            maximumReceivedLength: types.receivesMessages ? min(limit, frameLimit) : limit
        )
    }
}

extension ServerConfiguration {
    /// What lies between the socket and the frames of connections accepted on `endpoint`, from the socket on.
    ///
    /// - Throws: `ConnectionError`: what is configured cannot be.
    func layers(on endpoint: Endpoint, carrying types: CarriedTypes) throws(ConnectionError) -> [any ChannelLayer] {
        var layers: [any ChannelLayer] = []
        if endpoint.isWebSocket {
            let handshake = try WebSocketServerHandshake(on: endpoint, configuration: webSocket)
            layers.append(WebSocketLayer(.server(handshake), options: connection.webSocketOptions(carrying: types)))
        }
        return layers
    }
}

/// What a connection's messages mean to its layers.
struct CarriedTypes {
    /// Whether a WebSocket's messages are handed to the user as they are, and not as a stream of frames.
    let receivesMessages: Bool
    /// Whether the user makes a WebSocket's messages.
    let sendsMessages: Bool

    init<Received: DelimitedMessage, Sent: DelimitedMessage>(receiving: Received.Type, sending: Sent.Type) {
        receivesMessages = Received.self == WebSocketMessage.self
        sendsMessages = Sent.self == WebSocketMessage.self
    }
}

extension ConnectionConfiguration {
    /// The frame limit for messages of a type: a `WebSocketMessage` has a byte in its frame that is not on the wire.
    func frameLimit<Message: DelimitedMessage>(for type: Message.Type) -> Int {
        guard Message.self == WebSocketMessage.self else { return maximumFrameLength }
        return min(max(maximumFrameLength, 0), Int.max - 1) + 1
    }
}
