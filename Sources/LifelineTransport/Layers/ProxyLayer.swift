package import LifelineCore
package import NIOCore

/// Asks a proxy to connect to the endpoint, and then removes itself. The socket must be connected to the proxy.
package struct ProxyLayer: ChannelLayer {
    private let route: ProxyRoute
    private let handshake: any ProxyHandshake

    /// - Throws: `ConnectionError` `invalidEndpoint` when a proxy cannot be asked for the endpoint.
    package init(route: ProxyRoute) throws(ConnectionError) {
        self.route = route
        self.handshake = try route.makeHandshake()
    }

    package var handshakeName: String { "the handshake with the proxy \(route.proxy)" }

    package func add(to channel: any Channel) -> EventLoopFuture<Void> {
        let established = channel.eventLoop.makePromise(of: Void.self)
        let handler = ProxyHandler(route: route, handshake: handshake, established: established)
        do {
            try channel.pipeline.syncOperations.addHandler(handler)
        } catch {
            established.fail(error)
        }
        return established.futureResult
    }
}

/// Runs the handshake with a proxy, then passes on the bytes after it and removes itself.
private final class ProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let route: ProxyRoute
    private var handshake: any ProxyHandshake
    /// Nil once it is completed.
    private var established: EventLoopPromise<Void>?

    init(route: ProxyRoute, handshake: any ProxyHandshake, established: EventLoopPromise<Void>) {
        self.route = route
        self.handshake = handshake
        self.established = established
    }

    func handlerAdded(context: ChannelHandlerContext) {
        guard context.channel.isActive else { return end(with: .failure(route.cut())) }
        send(handshake.greeting, context)
    }

    /// Called after the handler has removed itself, or when the channel is closed.
    func handlerRemoved(context: ChannelHandlerContext) {
        end(with: .failure(route.cut()))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        while established != nil, let byte = bytes.readInteger(as: UInt8.self) {
            do throws(ConnectionError) {
                switch try handshake.receive(byte) {
                case .none: break
                case .send(let answer): send(answer, context)
                case .established: finish(bytes, context)
                }
            } catch {
                end(with: .failure(error))
            }
        }
    }

    /// The handlers above are added when the promise is completed.
    private func finish(_ rest: ByteBuffer, _ context: ChannelHandlerContext) {
        end(with: .success(()))
        if rest.readableBytes > 0, context.channel.isActive {
            context.fireChannelRead(wrapInboundOut(rest))
        }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // No reset follows an end in order, and a proxy that has ended sends nothing more.
        if case .inputClosed? = event as? ChannelEvent { end(with: .failure(route.cut())) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard established != nil else { return context.fireErrorCaught(error) }
        end(with: .failure(route.cut(error)))
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(with: .failure(route.cut()))
        context.fireChannelInactive()
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }

    private func end(with result: Result<Void, ConnectionError>) {
        guard let promise = established else { return }
        established = nil
        promise.completeWith(result.mapError { $0 as any Error })
    }
}
