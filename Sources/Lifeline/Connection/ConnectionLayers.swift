internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// What lies between the socket and the frames, from the socket on. Making layers may read files and builds what all
// connections share: once for each client and server, and not on an event loop.

extension ConnectionConfiguration {
    /// `options` with what lies between the socket and the frames of a connection to `endpoint`.
    ///
    /// - Throws: `ConnectionError`: what is configured cannot be.
    func addingLayers(
        to options: ConnectionOptions,
        for endpoint: Endpoint,
        carrying types: CarriedTypes
    ) throws(ConnectionError) -> ConnectionOptions {
        var options = options
        options.layers = []
        if let refusal = types.refusal { throw refusal }
        if let proxy = try proxyServer(for: endpoint) {
            options.proxyAddress = proxy.address
            options.layers.append(try ProxyLayer(route: ProxyRoute(proxy: proxy, endpoint: endpoint)))
        }
        if endpoint.isEncrypted { options.layers.append(try TLSClientLayer(tls, host: endpoint.host)) }
        if endpoint.isWebSocket {
            let request = try WebSocketRequest(to: endpoint, configuration: webSocket)
            options.layers.append(WebSocketLayer(.client(request), options: webSocketOptions(carrying: types)))
        }
        if let framing = types.framing {
            options.layers.append(framing.layer(maximumFrameLength))
        }
        return options
    }

    /// The same for a task that may run on an event loop: it goes on elsewhere meanwhile.
    nonisolated(nonsending) func addingLayersOffLoops(
        to options: ConnectionOptions,
        for endpoint: Endpoint,
        carrying types: CarriedTypes
    ) async throws -> ConnectionOptions {
        // A simulated world has no other threads.
        if NIOTransport.simulated != nil { return try addingLayers(to: options, for: endpoint, carrying: types) }
        return try await withTaskExecutorPreference(globalConcurrentExecutor) {
            try addingLayers(to: options, for: endpoint, carrying: types)
        }
    }

    /// Where the socket is connected to, for a connection to `endpoint`.
    func proxyServer(for endpoint: Endpoint) throws(ConnectionError) -> ProxyServer? {
        guard let proxy else { return nil }
        var environment: [String: String] = [:]
        for name in ProxyConfiguration.environmentVariables {
            environment[name] = getenv(name).map { String(cString: $0) }
        }
        return try proxy.server(for: endpoint, environment: environment)
    }

    func webSocketOptions(carrying types: CarriedTypes) -> WebSocketLayer.Options {
        let frameLimit = min(max(0, maximumFrameLength), Int(UInt32.max))
        let headLength = types.framing?.maximumHeadLength ?? Varint.maximumLength
        let fallback = max(64 << 10, types.receivesMessages ? frameLimit : frameLimit + headLength)
        let limit = max(0, webSocket.maximumReceivedMessageLength ?? fallback)
        return WebSocketLayer.Options(
            receivesMessages: types.receivesMessages,
            sendsMessages: types.sendsMessages,
            maximumMessageLength: max(1, webSocket.maximumMessageLength),
            maximumReceivedLength: types.receivesMessages ? min(limit, frameLimit) : limit
        )
    }
}

/// A client's options with its layers: made at the first attempt to connect, and again at the next one while they
/// cannot be made.
final class ClientLayers: Sendable {
    private let configuration: ConnectionConfiguration
    private let endpoint: Endpoint
    private let types: CarriedTypes
    private let made = NIOLockedValueBox<ConnectionOptions?>(nil)

    init(_ configuration: ConnectionConfiguration, endpoint: Endpoint, carrying types: CarriedTypes) {
        self.configuration = configuration
        self.endpoint = endpoint
        self.types = types
    }

    /// `options`, always the same ones, with the layers. For one task at a time.
    func added(to options: ConnectionOptions) throws(ConnectionError) -> ConnectionOptions {
        if let made = made.withLockedValue({ $0 }) { return made }
        let options = try configuration.addingLayers(to: options, for: endpoint, carrying: types)
        made.withLockedValue { $0 = options }
        return options
    }
}

extension Endpoint {
    fileprivate var host: String {
        switch address {
        case .tcp(let host, _): host
        case .unix(let path): path
        }
    }
}

/// What a connection's messages mean to its layers.
struct CarriedTypes: Sendable {
    /// Whether a WebSocket's messages are handed to the user as they are, and not as a stream of frames.
    let receivesMessages: Bool
    /// Whether the user makes a WebSocket's messages.
    let sendsMessages: Bool
    /// The framing that the peer speaks instead of delimited messages.
    let framing: MessageFraming?
    /// Why the two types are not for one connection.
    let refusal: ConnectionError?

    /// Delimited messages of any type.
    static let delimited = CarriedTypes(receiving: RawMessage.self, sending: RawMessage.self)

    /// - Parameter framing: the framing, where the types alone do not say it.
    init<Received: DelimitedMessage, Sent: DelimitedMessage>(
        receiving: Received.Type,
        sending: Sent.Type,
        framing given: MessageFraming? = nil
    ) {
        receivesMessages = Received.self == WebSocketMessage.self
        sendsMessages = Sent.self == WebSocketMessage.self
        do throws(ConnectionError) {
            let framed = Received.self as? any FramedMessage.Type ?? Sent.self as? any FramedMessage.Type
            framing = if let given { given } else { try framed?.framing(receiving: Received.self, sending: Sent.self) }
            refusal = nil
        } catch {
            framing = nil
            refusal = error
        }
    }
}

extension ConnectionConfiguration {
    /// The frame limit for messages of a type that come in: some have bytes in their frames that are not on the wire.
    /// Their layer has checked the bytes on the wire.
    func frameLimit<Message: DelimitedMessage>(for type: Message.Type) -> Int {
        guard let type = Message.self as? any CarriedMessage.Type else { return maximumFrameLength }
        return min(max(maximumFrameLength, 0), Int.max - type.maximumUncountedLength) + type.maximumUncountedLength
    }

    /// Checks messages of a type that are to be sent.
    func encoder<Message: DelimitedMessage>(for type: Message.Type) -> FrameEncoder {
        guard let type = Message.self as? any CarriedMessage.Type else {
            return FrameEncoder(maximumFrameLength: maximumFrameLength)
        }
        return FrameEncoder(maximumFrameLength: maximumFrameLength) { type.uncountedLength(in: $0) }
    }
}
