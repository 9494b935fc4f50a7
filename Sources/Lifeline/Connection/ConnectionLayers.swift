internal import Glibc
internal import LifelineCore
internal import LifelineMessages
internal import LifelineTransport
internal import NIOConcurrencyHelpers

// The layers between the socket and the frames, from the socket on. Making layers may read files, and builds what all
// connections share. So it happens once for each client and server, and not on an event loop.

extension ConnectionConfiguration {
    /// Returns `options` with the layers between the socket and the frames of a connection to `endpoint`.
    ///
    /// - Throws: `ConnectionError` when the configuration cannot be used.
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

    /// Does the same for a task that may run on an event loop: the work runs on another thread.
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

    /// Returns the proxy that the socket connects to for a connection to `endpoint`, if any.
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

/// A client's options with its layers. They are made at the first attempt to connect; if that fails, the next attempt
/// makes them again.
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

    /// Returns `options`, always the same ones, with the layers. One task at a time may call it.
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

/// The facts about a connection's message types that its layers need.
struct CarriedTypes: Sendable {
    /// Whether the user receives a WebSocket's messages as they are, and not as a stream of frames.
    let receivesMessages: Bool
    /// Whether the user makes a WebSocket's messages.
    let sendsMessages: Bool
    /// The framing that the peer uses instead of delimited messages.
    let framing: MessageFraming?
    /// The reason why one connection cannot carry both types.
    let refusal: ConnectionError?

    /// Delimited messages of any type.
    static let delimited = CarriedTypes(receiving: RawMessage.self, sending: RawMessage.self)

    /// - Parameter framing: the framing, if the types alone do not determine it.
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
    /// The frame limit for received messages of a type. Some types have bytes in their frames that are not on the wire;
    /// their layer has checked the bytes on the wire.
    func frameLimit<Message: DelimitedMessage>(for type: Message.Type) -> Int {
        guard let type = Message.self as? any CarriedMessage.Type else { return maximumFrameLength }
        return min(max(maximumFrameLength, 0), Int.max - type.maximumUncountedLength) + type.maximumUncountedLength
    }

    /// Returns an encoder that checks outgoing messages of a type.
    func encoder<Message: DelimitedMessage>(for type: Message.Type) -> FrameEncoder {
        guard let type = Message.self as? any CarriedMessage.Type else {
            return FrameEncoder(maximumFrameLength: maximumFrameLength)
        }
        return FrameEncoder(maximumFrameLength: maximumFrameLength) { type.uncountedLength(in: $0) }
    }
}
