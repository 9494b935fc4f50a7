internal import NIOCore

/// Parses the bytes of a connection into replies, and reports its end.
final class RedisChannelHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var parser: RESPParser
    private var replies: [RedisValue] = []
    private let received: ([RedisValue], RESPError?) -> Void
    private let lost: (RedisError) -> Void

    /// - Parameters:
    ///   - received: receives the replies of a read, and the error in the bytes after them, if there is one.
    ///   - lost: receives the reason for the end of the connection, perhaps more than once.
    init(
        limits: RedisReplyLimits,
        received: @escaping ([RedisValue], RESPError?) -> Void,
        lost: @escaping (RedisError) -> Void
    ) {
        parser = RESPParser(limits: limits)
        (self.received, self.lost) = (received, lost)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var failure: RESPError?
        do throws(RESPError) {
            try parser.parse(unwrapInboundIn(data), into: &replies)
        } catch {
            failure = error
        }
        received(replies, failure)
        replies.removeAll(keepingCapacity: true)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Redis never ends its side alone.
        if case .inputClosed? = event as? ChannelEvent { lost(.connectionFailed(nil)) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        lost(.connectionFailed(error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        lost(.connectionFailed(nil))
        context.fireChannelInactive()
    }
}
