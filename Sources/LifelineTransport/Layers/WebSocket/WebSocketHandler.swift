internal import LifelineCore
internal import NIOCore
internal import NIOWebSocket

/// An event: the peer has closed both directions at once, as WebSocket does. Accepted bytes that are not written yet
/// are lost.
package struct PeerEndedBothSides: Sendable {
    package init() {}
}

/// An event that asks the peer for a sign of life, on a layer that can. It fails when this side has ended.
struct LayerPing: Sendable {
    let number: UInt64
}

/// An event: the peer sent a malformed frame or message. A layer may tell the peer before the connection is closed.
struct PeerViolatedProtocol: Sendable {}

/// The handler of an open WebSocket: translates between its messages and the bytes of `ConnectionHandler`.
/// `WebSocketStateMachine` decides.
///
/// The bytes of one read are passed on together. A read with only control frames, or a part of a frame, passes on no
/// bytes, which counts as a sign of life.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = WebSocketFrame

    /// The most pongs that may wait to be written. Of further ones only the newest is kept (RFC 6455, section 5.5.3).
    private static let maximumPongs = 16

    let opening: WebSocketOpening
    private let role: WebSocketStateMachine.Role
    private let options: WebSocketLayer.Options
    var machine: WebSocketStateMachine
    /// The bytes of the present read so far.
    private var inbound = ByteBuffer()
    /// The message that is being received in fragments, when whole messages are passed on.
    private var message = ByteBuffer()
    private var pongsInFlight = 0
    private var newestPing: ByteBuffer?
    private var needsFlush = false
    /// The reason why nothing more can be written.
    private var writeFailure: ConnectionError?
    var closeWritten: EventLoopFuture<Void>?
    var linger = Linger.none

    init(role: WebSocketStateMachine.Role, opening: WebSocketOpening, options: WebSocketLayer.Options) {
        self.role = role
        self.opening = opening
        self.options = options
        machine = WebSocketStateMachine(
            rules: WebSocketFrameRules(role: role, receivesMessages: options.receivesMessages),
            // In a stream of frames a message needs no bound, because it is not kept.
            maximumMessageLength: options.receivesMessages ? options.maximumReceivedLength : nil
        )
    }

    // MARK: Input

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let header = WebSocketStateMachine.Header(
            isFinal: frame.fin,
            hasReservedBits: frame.rsv1 || frame.rsv2 || frame.rsv3,
            opcode: UInt8(webSocketOpcode: frame.opcode),
            isMasked: frame.maskKey != nil
        )
        let payload = frame.unmaskedData
        perform(payload.withUnsafeReadableBytes { machine.received(header, payload: $0) }, payload, context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        deliver(context)
        if needsFlush {
            needsFlush = false
            context.flush()
        }
        // Read even if no bytes are wanted now, so that the end is noticed.
        if case .waiting = linger { context.read() }
        context.fireChannelReadComplete()
    }

    private func perform(
        _ action: WebSocketStateMachine.FrameAction,
        _ payload: ByteBuffer,
        _ context: ChannelHandlerContext
    ) {
        switch action {
        case .none:
            return
        case .deliver(let kind, let isLast):
            take(payload, kind, isLast: isLast)
        case .answerPing:
            answerPing(payload, context)
        case .peerClosed(let answer, let end):
            deliver(context)
            let failure: ConnectionError? =
                switch end {
                case .regular: nil
                case .insideMessage: .webSocketMessageCut
                case .failed(let closure): .webSocketClosed(closure)
                }
            writeFailure = failure ?? .webSocketEnded
            if let answer { writeClose(answer, context) }
            if role == .client { beginLinger(isAfterFailure: failure != nil, context) }
            if let failure {
                context.fireErrorCaught(failure)
            } else {
                context.fireUserInboundEventTriggered(PeerEndedBothSides())
            }
        case .violated(let answer, let closure):
            deliver(context)
            let failure = ConnectionError.webSocketViolated(closure)
            refuse(answer, failure, context)
            context.fireErrorCaught(failure)
        }
    }

    private func refuse(_ answer: [UInt8]?, _ failure: ConnectionError, _ context: ChannelHandlerContext) {
        writeFailure = failure
        if let answer { writeClose(answer, context) }
        // A server closes first; a client follows when the server's side has ended.
        if role == .server {
            closeWritten?.assumeIsolated().whenSuccess { context.close(mode: .output, promise: nil) }
        }
        beginLinger(isAfterFailure: true, context)
    }

    private func take(_ payload: ByteBuffer, _ kind: WebSocketStateMachine.Kind, isLast: Bool) {
        guard options.receivesMessages else { return inbound.append(payload) }
        guard isLast else { return message.append(payload) }
        let byteCount = message.readableBytes + payload.readableBytes
        inbound.writeBytes(WebSocketMessageFrame.head(of: kind, byteCount: byteCount))
        if message.readableBytes > 0 {
            inbound.writeImmutableBuffer(message)
            message = ByteBuffer()
        }
        inbound.writeImmutableBuffer(payload)
    }

    private func deliver(_ context: ChannelHandlerContext) {
        let bytes = inbound
        inbound = ByteBuffer()
        context.fireChannelRead(wrapInboundOut(bytes))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        endLinger(isOverdue: false, context)
        if machine.transportEnded() { reportCut(context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .waiting(let wait) = linger {
            wait.timer.cancel()
            wait.close?.succeed()
        }
        linger = .over
        if machine.transportEnded() { reportCut(context) }
        context.fireChannelInactive()
    }

    private func reportCut(_ context: ChannelHandlerContext) {
        deliver(context)
        context.fireErrorCaught(ConnectionError.webSocketCut)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let closure as WebSocketClosure:
            perform(machine.violated(closure), ByteBuffer(), context)
        case NIOWebSocketError.invalidFrameLength:
            perform(machine.violated(.tooBig(limit: options.maximumReceivedLength)), ByteBuffer(), context)
        case is NIOWebSocketError:
            perform(machine.violated(.noFrame), ByteBuffer(), context)
        case is ByteToMessageDecoderError:
            // Bytes after a frame that could not be read are dropped.
            return
        case _ where machine.hasPeerClosed:
            // The connection is closed after both sides have ended, which is not a failure.
            endLinger(isOverdue: false, context)
        default:
            context.fireErrorCaught(error)
        }
    }

    // MARK: Output

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard machine.maySend else {
            promise?.fail(writeFailure ?? .webSocketEnded)
            return
        }
        var bytes = unwrapOutboundIn(data)
        var isComplete = false
        while !isComplete, let (opcode, payload) = nextMessage(&bytes) {
            isComplete = bytes.readableBytes == 0
            context.write(frame(opcode, payload), promise: isComplete ? promise : nil)
        }
        // This never happens: the handlers above write only whole frames.
        if !isComplete { promise?.fail(ConnectionError.webSocketEnded) }
    }

    private func nextMessage(_ bytes: inout ByteBuffer) -> (WebSocketOpcode, ByteBuffer)? {
        guard bytes.readableBytes > 0 else { return nil }
        guard options.sendsMessages else {
            let length = bytes.withUnsafeReadableBytes {
                FrameRuns.nextLength(in: $0, maximumLength: options.maximumMessageLength)
            }
            return bytes.readSlice(length: length).map { (.binary, $0) }
        }
        guard let next = bytes.withUnsafeReadableBytes({ WebSocketMessageFrame.next(in: $0) }) else { return nil }
        bytes.moveReaderIndex(forwardBy: next.headLength)
        return bytes.readSlice(length: next.byteCount).map { (next.kind == .text ? .text : .binary, $0) }
    }

    func frame(_ opcode: WebSocketOpcode, _ payload: ByteBuffer) -> NIOAny {
        let maskKey = role == .client ? WebSocketMaskingKey.random() : nil
        return wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, maskKey: maskKey, data: payload))
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        switch event {
        case let ping as LayerPing:
            guard machine.maySend else {
                promise?.fail(writeFailure ?? .webSocketEnded)
                return
            }
            context.writeAndFlush(frame(.ping, ByteBuffer(integer: ping.number)), promise: nil)
            promise?.succeed()
        case is PeerViolatedProtocol:
            let closure = WebSocketClosure(.invalidPayload, reason: "the message is malformed")
            if case .violated(let answer, _) = machine.violated(closure) {
                refuse(answer, .webSocketViolated(closure), context)
            }
            promise?.succeed()
        case is SocketCut:
            // A Close that reports a failure gets its time. An abort does not wait.
            if case .waiting(var wait) = linger, wait.isAfterFailure {
                wait.requestClose(promise)
                linger = .waiting(wait)
            } else {
                cut(context, promise)
            }
        default:
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    private func answerPing(_ payload: ByteBuffer, _ context: ChannelHandlerContext) {
        guard pongsInFlight < Self.maximumPongs else {
            newestPing = payload
            return
        }
        pongsInFlight += 1
        needsFlush = true
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenSuccess { self.pongWritten(context) }
        context.write(frame(.pong, payload), promise: written)
    }

    private func pongWritten(_ context: ChannelHandlerContext) {
        pongsInFlight -= 1
        guard let payload = newestPing, machine.maySend else { return }
        newestPing = nil
        answerPing(payload, context)
        // This may run while a flush is under way, and after the read with the ping.
        context.eventLoop.assumeIsolated().execute { context.flush() }
    }
}

extension ByteBuffer {
    /// Appends bytes; the first ones without a copy.
    fileprivate mutating func append(_ bytes: ByteBuffer) {
        if readableBytes == 0 {
            self = bytes
        } else {
            writeImmutableBuffer(bytes)
        }
    }
}
