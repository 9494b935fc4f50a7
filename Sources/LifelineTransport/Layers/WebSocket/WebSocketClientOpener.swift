internal import LifelineCore
internal import NIOCore
internal import NIOHTTP1

/// Asks the server for a WebSocket, and replaces itself by its handlers.
final class WebSocketClientOpener: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private typealias Reader = HTTPHeadReader<HTTPResponseDecoder>

    private let handshake: WebSocketClientHandshake
    private let options: WebSocketLayer.Options
    private let encoder = HTTPRequestEncoder()
    private let decoder = HTTPResponseDecoder(limitConfiguration: WebSocketLayer.headLimits)
    private let reader: Reader
    /// Nil once it is completed.
    private var opened: EventLoopPromise<Void>?
    private var opening: WebSocketOpening?
    private var isHeadComplete = false

    static func add(
        to channel: any Channel,
        _ request: WebSocketRequest,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) throws {
        let opener = WebSocketClientOpener(request, options, opened)
        try channel.pipeline.syncOperations.addHandlers(opener.encoder, opener.reader, opener)
    }

    private init(
        _ request: WebSocketRequest,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) {
        var random = SystemRandomNumberGenerator()
        handshake = WebSocketClientHandshake(
            request,
            nonce: (0..<16).map { _ in .random(in: 0...255, using: &random) },
            sha1: WebSocketLayer.sha1
        )
        self.options = options
        reader = Reader(decoder)
        self.opened = opened
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let head = HTTPRequestHead(
            version: .http1_1,
            method: .GET,
            uri: handshake.target,
            headers: HTTPHeaders(handshake.fields)
        )
        // The decoder has to know the request that is answered.
        decoder.write(data: .head(head))
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
            isHeadComplete = true
            reader.keepRest()
        case .body:
            return
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is HTTPBytesDecoded:
            if isHeadComplete, let opening, let opened { open(opening, opened, context) }
        case ChannelEvent.inputClosed:
            fail(HandshakeCut())
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    private func open(
        _ opening: WebSocketOpening,
        _ opened: EventLoopPromise<Void>,
        _ context: ChannelHandlerContext
    ) {
        self.opened = nil
        let early = reader.takeRest()
        let pipeline = context.pipeline.syncOperations
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(reader, promise: nil)
        WebSocketInstallation(role: .client, opening: opening, options: options)
            .run(context, early: early, opened: opened)
        pipeline.removeHandler(self, promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case is HTTPParserError, is ByteToMessageDecoderError.PayloadTooLargeError:
            fail(.badWebSocketAnswer("is not an HTTP answer of a reasonable size"))
        default: fail(error)
        }
    }

    private func fail(_ error: ConnectionError) { fail(error as any Error) }

    private func fail(_ error: any Error) {
        reader.drop()
        opened?.fail(error)
        opened = nil
    }
}
