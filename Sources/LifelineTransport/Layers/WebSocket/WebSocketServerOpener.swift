internal import LifelineCore
internal import NIOCore
internal import NIOHTTP1

/// Answers a client's request for a WebSocket, and replaces itself by its handlers.
final class WebSocketServerOpener: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private typealias Reader = HTTPHeadReader<HTTPRequestDecoder>

    private enum State {
        /// Can go to: decided, ended.
        case waiting
        /// The request's head was received, but not its end. Can go to: complete, ended.
        case decided(WebSocketServerHandshake.Decision)
        /// The request is complete, and the bytes after it are not known. Can go to: authorizing, ended.
        case complete(WebSocketServerHandshake.Decision)
        /// The authorization of the user is under way. Can go to: ended.
        case authorizing
        /// The answer is written. Can go to: no other state.
        case ended
    }

    private let handshake: WebSocketServerHandshake
    private let options: WebSocketLayer.Options
    private let encoder = HTTPResponseEncoder()
    private let reader = Reader(HTTPRequestDecoder(limitConfiguration: WebSocketLayer.headLimits))
    private var state = State.waiting
    /// Nil once it is completed.
    private var opened: EventLoopPromise<Void>?
    /// Ends with the connection.
    private var authorization: Task<Void, Never>?

    static func add(
        to channel: any Channel,
        _ handshake: WebSocketServerHandshake,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) throws {
        let opener = WebSocketServerOpener(handshake, options, opened)
        try channel.pipeline.syncOperations.addHandlers(opener.encoder, opener.reader, opener)
    }

    private init(
        _ handshake: WebSocketServerHandshake,
        _ options: WebSocketLayer.Options,
        _ opened: EventLoopPromise<Void>
    ) {
        self.handshake = handshake
        self.options = options
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
            let decision = handshake.decide(request, sha1: WebSocketLayer.sha1)
            state = .decided(decision)
            // Do not wait for a body.
            if case .refuse(let answer) = decision { refuse(answer, context) }
        case (.end, .decided(let decision)):
            state = .complete(decision)
            reader.keepRest()
        default:
            return
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is HTTPBytesDecoded:
            guard case .complete(.open(let opening, let answer, let credentials)) = state else { return }
            if let credentials {
                authorize(credentials, opening, answer, context)
            } else {
                open(opening, answer, context)
            }
        case ChannelEvent.inputClosed:
            fail(HandshakeCut())
        default:
            context.fireUserInboundEventTriggered(event)
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
        let answered = context.eventLoop.makePromise(of: WebSocketServerHandshake.Answer?.self)
        answered.futureResult.assumeIsolated().whenSuccess { refusal in
            self.authorization = nil
            guard case .authorizing = self.state, self.opened != nil else { return }
            if let refusal {
                self.refuse(refusal, context)
            } else {
                self.open(opening, answer, context)
            }
        }
        authorization = answered.completeWithTask { await handshake.refusal(of: credentials) }
    }

    private func open(
        _ opening: WebSocketOpening,
        _ answer: WebSocketServerHandshake.Answer,
        _ context: ChannelHandlerContext
    ) {
        write(answer, context)
        guard let opened else { return }
        self.opened = nil
        let early = reader.takeRest()
        let pipeline = context.pipeline.syncOperations
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(reader, promise: nil)
        WebSocketInstallation(role: .server, opening: opening, options: options)
            .run(context, early: early, opened: opened)
        pipeline.removeHandler(self, promise: nil)
    }

    /// Answers, and fails. `SocketEnd` gives the peer time to read the answer.
    private func refuse(_ answer: WebSocketServerHandshake.Answer, _ context: ChannelHandlerContext) {
        write(answer, context)
        fail(
            ConnectionError(
                code: .webSocketRefused,
                message: "No WebSocket was opened: \(answer.complaint) (status \(answer.status)).",
                cause: WebSocketRefusal(status: answer.status, reason: answer.complaint)
            )
        )
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

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch (error, state) {
        case (HTTPParserError.headerOverflow, .waiting), (is ByteToMessageDecoderError.PayloadTooLargeError, .waiting):
            refuse(WebSocketServerHandshake.refusal(tooLong: true), context)
        case (is HTTPParserError, .waiting):
            refuse(WebSocketServerHandshake.refusal(tooLong: false), context)
        default: fail(error)
        }
    }

    private func fail(_ error: any Error) {
        reader.drop()
        authorization?.cancel()
        opened?.fail(error)
        opened = nil
    }
}
