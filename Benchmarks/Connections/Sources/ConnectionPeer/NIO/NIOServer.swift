internal import NIOCore
internal import NIOPosix

/// A server with SwiftNIO's own codecs, which flushes when a read is complete.
func runNIOServer(_ mode: ServerMode) async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup(numberOfThreads: 1))
        .serverChannelOption(.backlog, value: 1024)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandlers([
                    ByteToMessageHandler(VarintFrameDecoder()),
                    MessageToByteHandler(VarintFrameEncoder()),
                    AnsweringHandler(echoes: mode == .echo),
                ])
            }
        }
        .bind(host: "127.0.0.1", port: 0).get()
    say("port \(channel.localAddress?.port ?? 0)")
    try await channel.closeFuture.get()
}

private final class AnsweringHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let echoes: Bool

    init(echoes: Bool) { self.echoes = echoes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        if echoes || frame.readableBytes == 0 { context.write(wrapOutboundOut(frame), promise: nil) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
