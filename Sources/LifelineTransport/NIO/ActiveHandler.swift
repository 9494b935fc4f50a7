internal import NIOCore

/// Calls the set-up of a connection as soon as the connection is open.
final class ActiveHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let whenActive: (any Channel) -> Void

    init(whenActive: @escaping (any Channel) -> Void) {
        self.whenActive = whenActive
    }

    func channelActive(context: ChannelHandlerContext) {
        let channel = context.channel
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
        whenActive(channel)
    }
}
