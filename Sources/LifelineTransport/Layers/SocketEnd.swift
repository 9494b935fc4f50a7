package import NIOCore

/// Asks to close a channel's socket at once, without the last bytes of layers.
struct SocketCut: Sendable {}

extension Channel {
    /// Closes the socket at once, without waiting for layers to end. For a channel with layers.
    package func cutSocket() { triggerUserOutboundEvent(SocketCut(), promise: nil) }
}

/// The handler next to the socket, below all layers.
///
/// A layer closes in its own way: TLS announces its end and waits for the peer's. That is right for an end in order,
/// and wrong for a cut, which the peer must not mistake for one.
final class SocketEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The time that a refused peer gets to read the reason.
    static let lingerTime = TimeAmount.seconds(1)

    /// Whether the peer should read the last bytes before the close. A socket that is closed with unread bytes resets
    /// its connection, and the peer may never see the bytes before. So received bytes are read and dropped until the
    /// peer has ended its side, for a limited time.
    var lingers = false
    private var lingerTimer: Scheduled<Void>?
    private var hasPeerEnded = false
    private var letsPeerRead: Bool { lingers && !hasPeerEnded }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is SocketCut else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if letsPeerRead { linger(context, promise) } else { context.close(promise: promise) }
    }

    /// A layer writes its last bytes and closes at once; NIO drops the bytes that the kernel has not taken by then.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .all, letsPeerRead { return linger(context, promise) }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard mode != .input, waiting > 0 else { return context.close(mode: mode, promise: promise) }
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: mode, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(capacity: 0)), promise: written)
    }

    // MARK: Letting the peer read

    private func linger(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
        context.channel.closeFuture.cascade(to: promise)
        guard lingerTimer == nil else { return }
        lingerTimer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingerTime) {
            context.close(promise: nil)
        }
        close(context: context, mode: .output, promise: nil)
        // Layers above may not want to read now.
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if lingerTimer == nil { context.fireChannelRead(data) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if lingerTimer == nil { context.fireChannelReadComplete() } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent {
            hasPeerEnded = true
            if lingerTimer != nil { return context.close(promise: nil) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        hasPeerEnded = true
        lingerTimer?.cancel()
        context.fireChannelInactive()
    }
}
