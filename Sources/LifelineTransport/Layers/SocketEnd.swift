internal import NIOCore

/// Asks for a channel's socket to be closed at once, without what layers would still like to say.
struct SocketCut: Sendable {}

/// Stands next to the socket, below all layers.
///
/// A layer closes in its own way: TLS says that it is the end and waits for the peer to say so, too. That is right for an
/// end in order, and wrong for a cut, which the peer must not take for one.
final class SocketEnd: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is SocketCut else { return context.triggerUserOutboundEvent(event, promise: promise) }
        context.close(promise: promise)
    }

    /// A layer writes its last and closes in one go; NIO drops what the kernel has not taken by then.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard mode != .input, waiting > 0 else { return context.close(mode: mode, promise: promise) }
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: mode, promise: promise) }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(capacity: 0)), promise: written)
    }
}
