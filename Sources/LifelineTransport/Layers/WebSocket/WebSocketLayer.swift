internal import Crypto
package import LifelineCore
package import NIOCore
internal import NIOHTTP1
internal import NIOWebSocket

/// WebSocket between a connection and its frames.
///
/// Binary messages form a byte stream of frames. Each message of this side carries whole frames; the peer's messages
/// may split them anywhere, as gateways do. If the user sends or receives messages, each is one frame
/// (`WebSocketMessageFrame`) above the layer.
package struct WebSocketLayer: ChannelLayer {
    package enum Role: Sendable {
        case client(WebSocketRequest)
        case server(WebSocketServerHandshake)
    }

    /// The layer's options for messages.
    package struct Options: Sendable {
        /// Whether the user receives WebSocket messages, and not frames.
        package var receivesMessages: Bool
        /// Whether the user sends WebSocket messages, and not frames.
        package var sendsMessages: Bool
        /// The most bytes of a message that carries more than one frame.
        package var maximumMessageLength: Int
        /// The most bytes of a message of the peer, or, if frames are received, of a fragment.
        package var maximumReceivedLength: Int

        package init(
            receivesMessages: Bool = false,
            sendsMessages: Bool = false,
            maximumMessageLength: Int,
            maximumReceivedLength: Int
        ) {
            self.receivesMessages = receivesMessages
            self.sendsMessages = sendsMessages
            self.maximumMessageLength = maximumMessageLength
            self.maximumReceivedLength = maximumReceivedLength
        }
    }

    private let role: Role
    private let options: Options

    package init(_ role: Role, options: Options) {
        self.role = role
        self.options = options
    }

    package var handshakeName: String { "the WebSocket handshake" }

    package var sendsPings: Bool { true }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        let opened = channel.eventLoop.makePromise(of: Void.self)
        do {
            switch role {
            case .client(let request):
                try WebSocketClientOpener.add(to: channel, request, options, opened)
            case .server(let handshake):
                try WebSocketServerOpener.add(to: channel, handshake, options, opened)
            }
        } catch {
            opened.fail(error)
        }
        return opened.futureResult
    }

    /// Returns a text's SHA-1 digest, for the handshakes.
    @Sendable
    static func sha1(_ text: String) -> [UInt8] {
        Array(Insecure.SHA1.hash(data: Array(text.utf8)))
    }

    /// The limits of a head: 8 KiB for a field, 32 KiB in all, 100 fields. That is more than browsers send, including
    /// cookies, and small enough to keep for each connection that is being opened.
    static var headLimits: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 8 << 10
        limits.maxHeaderListSize = 32 << 10
        limits.maxHeaderFieldCount = 100
        return limits
    }
}

/// Replaces the handlers of the handshake by those of an open WebSocket.
struct WebSocketInstallation {
    let role: WebSocketStateMachine.Role
    let opening: WebSocketOpening
    let options: WebSocketLayer.Options

    /// - Parameters:
    ///   - context: the context of the handshake's handler, which is the last one.
    ///   - early: the bytes received after the head.
    func run(_ context: ChannelHandlerContext, early: ByteBuffer, opened: EventLoopPromise<Void>) {
        let pipeline = context.pipeline.syncOperations
        do {
            let maximumFrameSize = min(max(options.maximumReceivedLength, 125), Int(UInt32.max))
            let rules = WebSocketFrameRules(role: role, receivesMessages: options.receivesMessages)
            try pipeline.addHandlers(
                WebSocketHeaderHandler(rules),
                ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: maximumFrameSize)),
                WebSocketFrameEncoder(),
                WebSocketHandler(role: role, opening: opening, options: options)
            )
        } catch {
            return opened.fail(error)
        }
        opened.succeed()
        guard early.readableBytes > 0 else { return }
        context.fireChannelRead(NIOAny(early))
        context.fireChannelReadComplete()
    }
}

extension HTTPFields {
    init(_ headers: HTTPHeaders) {
        self.init()
        for (name, value) in headers { append(value, named: name) }
    }
}

extension HTTPHeaders {
    init(_ fields: HTTPFields) {
        self.init(fields.fields.map { ($0.name, $0.value) })
    }
}
