internal import LifelineCore
internal import NIOCore
internal import NIOHTTP1

/// Asks the server for a WebSocket, and replaces itself by one.
final class WebSocketClientOpener: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private typealias Decoder = ByteToMessageHandler<HTTPResponseDecoder>

    private let handshake: WebSocketClientHandshake
    private let options: WebSocketLayer.Options
    private let encoder: HTTPRequestEncoder
    private let decoder: Decoder
    /// Nil once it is kept.
    private var opened: EventLoopPromise<Void>?
    private var opening: WebSocketOpening?
    private var early: ByteBuffer?

    static func add(
        to channel: any Channel,
        _ request: WebSocketRequest,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) throws {
        let encoder = HTTPRequestEncoder()
        // What follows the head comes as an error, so that it is told from what the decoder makes.
        let decoder = ByteToMessageHandler(
            HTTPResponseDecoder(leftOverBytesStrategy: .fireError, limitConfiguration: WebSocketLayer.headLimits),
            maximumBufferSize: WebSocketLayer.maximumEarlyByteCount
        )
        let opener = WebSocketClientOpener(request, options, encoder, decoder, opened)
        try channel.pipeline.syncOperations.addHandlers(encoder, decoder, opener)
    }

    private init(
        _ request: WebSocketRequest,
        _ options: WebSocketLayer.Options,
        _ encoder: HTTPRequestEncoder,
        _ decoder: Decoder,
        _ opened: EventLoopPromise<Void>
    ) {
        var random = SystemRandomNumberGenerator()
        handshake = WebSocketClientHandshake(request, nonce: (0..<16).map { _ in .random(in: 0...255, using: &random) })
        self.options = options
        self.encoder = encoder
        self.decoder = decoder
        self.opened = opened
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let head = HTTPRequestHead(
            version: .http1_1,
            method: .GET,
            uri: handshake.target,
            headers: HTTPHeaders(handshake.fields)
        )
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        fail(HandshakeCut())
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard opened != nil else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            do throws(ConnectionError) {
                opening = try handshake.opening(
                    status: Int(head.status.code),
                    reason: head.status.reasonPhrase,
                    fields: HTTPFields(head.headers)
                )
            } catch {
                fail(error)
            }
        case .end:
            if let opening { install(opening, context) }
        case .body:
            return
        }
    }

    private func install(_ opening: WebSocketOpening, _ context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(decoder).assumeIsolated().whenComplete { _ in
            guard let opened = self.opened else { return }
            self.opened = nil
            WebSocketInstallation(role: .client, opening: opening, options: self.options)
                .run(context, early: self.early, opened: opened)
            pipeline.removeHandler(self, promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { fail(HandshakeCut()) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case ByteToMessageDecoderError.leftoverDataWhenDone(let bytes): early = bytes
        case is HTTPParserError, is ByteToMessageDecoderError.PayloadTooLargeError:
            fail(.badWebSocketAnswer("is no HTTP answer of a size that is to be expected"))
        default: fail(error)
        }
    }

    private func fail(_ error: ConnectionError) { fail(error as any Error) }

    private func fail(_ error: any Error) {
        opened?.fail(error)
        opened = nil
    }
}
