internal import LifelineCore
internal import NIOCore
internal import NIOHTTP1

/// Answers a client's request for a WebSocket, and replaces itself by one.
final class WebSocketServerOpener: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private typealias Decoder = ByteToMessageHandler<HTTPRequestDecoder>

    private enum State {
        /// Can go to: decided, ended.
        case waiting
        /// The request's head is known. Can go to: authorizing, ended.
        case decided(WebSocketServerHandshake.Decision)
        /// Somebody is asked whether the user may come in. Can go to: ended.
        case authorizing
        /// The answer is written.
        case ended
    }

    private let handshake: WebSocketServerHandshake
    private let options: WebSocketLayer.Options
    private let encoder: HTTPResponseEncoder
    private let decoder: Decoder
    private var state = State.waiting
    /// Nil once it is kept.
    private var opened: EventLoopPromise<Void>?
    /// What to fail with when the peer has had the time to read why.
    private var refusal: ConnectionError?
    private var early: ByteBuffer?

    static func add(
        to channel: any Channel,
        _ handshake: WebSocketServerHandshake,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) throws {
        let encoder = HTTPResponseEncoder()
        // What follows the head comes as an error, so that it is told from what the decoder makes.
        let decoder = ByteToMessageHandler(
            HTTPRequestDecoder(leftOverBytesStrategy: .fireError, limitConfiguration: WebSocketLayer.headLimits),
            maximumBufferSize: WebSocketLayer.maximumEarlyByteCount
        )
        let opener = WebSocketServerOpener(handshake, options, encoder, decoder, opened)
        try channel.pipeline.syncOperations.addHandlers(encoder, decoder, opener)
    }

    private init(
        _ handshake: WebSocketServerHandshake,
        _ options: WebSocketLayer.Options,
        _ encoder: HTTPResponseEncoder,
        _ decoder: Decoder,
        _ opened: EventLoopPromise<Void>
    ) {
        self.handshake = handshake
        self.options = options
        self.encoder = encoder
        self.decoder = decoder
        self.opened = opened
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        fail(HandshakeCut())
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .waiting):
            let request = WebSocketServerHandshake.Request(
                method: head.method.rawValue,
                isAtLeastHTTP11: head.version.major == 1 && head.version.minor >= 1,
                target: head.uri,
                fields: HTTPFields(head.headers)
            )
            let decision = handshake.decide(request)
            state = .decided(decision)
            // A body is not waited for.
            if case .refuse(let answer) = decision { refuse(answer, context) }
        case (.end, .decided(.open(let opening, let answer, nil))):
            open(opening, answer, context)
        case (.end, .decided(.open(let opening, let answer, let credentials?))):
            authorize(credentials, opening, answer, context)
        default:
            return
        }
    }

    private func authorize(
        _ credentials: WebSocketCredentials,
        _ opening: WebSocketOpening,
        _ answer: WebSocketServerHandshake.Answer,
        _ context: ChannelHandlerContext
    ) {
        state = .authorizing
        let handshake = handshake
        context.eventLoop.makeFutureWithTask { await handshake.refusal(of: credentials) }.assumeIsolated()
            .whenSuccess { refusal in
                guard case .authorizing = self.state, self.opened != nil else { return }
                if let refusal {
                    self.refuse(refusal, context)
                } else {
                    self.open(opening, answer, context)
                }
            }
    }

    private func open(
        _ opening: WebSocketOpening,
        _ answer: WebSocketServerHandshake.Answer,
        _ context: ChannelHandlerContext
    ) {
        write(answer, context)
        let pipeline = context.pipeline.syncOperations
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(decoder).assumeIsolated().whenComplete { _ in
            guard let opened = self.opened else { return }
            self.opened = nil
            WebSocketInstallation(role: .server, opening: opening, options: self.options)
                .run(context, early: self.early, opened: opened)
            pipeline.removeHandler(self, promise: nil)
        }
    }

    /// Answers, and ends this side. The connection is closed when the peer has ended its own, so that the answer is not lost
    /// by closing a socket that has unread bytes; but a peer that sends on is not waited for.
    private func refuse(_ answer: WebSocketServerHandshake.Answer, _ context: ChannelHandlerContext) {
        write(answer, context)
        context.close(mode: .output, promise: nil)
        refusal = ConnectionError(
            code: .webSocketRefused,
            message: "No WebSocket was opened: \(answer.complaint) (status \(answer.status)).",
            cause: WebSocketRefusal(status: answer.status, reason: answer.complaint)
        )
        context.eventLoop.assumeIsolated().scheduleTask(in: WebSocketHandler.lingerTime) {
            self.fail(HandshakeCut())
        }
    }

    private func write(_ answer: WebSocketServerHandshake.Answer, _ context: ChannelHandlerContext) {
        state = .ended
        let head = HTTPResponseHead(
            version: .http1_1,
            status: HTTPResponseStatus(statusCode: answer.status),
            headers: HTTPHeaders(answer.fields)
        )
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { fail(HandshakeCut()) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch (error, state) {
        case (ByteToMessageDecoderError.leftoverDataWhenDone(let bytes), _): early = bytes
        case (is HTTPParserError, .waiting):
            let tooLong = [HTTPParserError.headerOverflow].contains(error as? HTTPParserError)
            refuse(WebSocketServerHandshake.refusal(tooLong: tooLong), context)
        case _ where refusal != nil: return
        default: fail(error)
        }
    }

    private func fail(_ error: any Error) {
        opened?.fail(refusal ?? error)
        opened = nil
    }
}
