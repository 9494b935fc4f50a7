internal import Glibc
internal import Logging
internal import NIOCore

/// Lets a listening socket accept while there is room for a connection.
///
/// At the limit, and for a moment after the process has run out of descriptors or memory, the socket is not read: the
/// kernel's backlog holds what comes.
final class AcceptHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    /// How long to wait after a failed accept: long enough not to spin, short enough not to be seen.
    private static let pauseAfterError = TimeAmount.milliseconds(100)

    private let maximumConnections: Int
    private let logger: Logger
    private let executor: LoopExecutor?
    private let whenInactive: () -> Void
    private var context: ChannelHandlerContext?
    private var connectionCount = 0
    private var isPausedAfterError = false
    private(set) var isReading = true

    /// - Parameter executor: runs tasks on the loop.
    init(
        maximumConnections: Int,
        logger: Logger,
        executor: LoopExecutor? = nil,
        whenInactive: @escaping () -> Void
    ) {
        self.executor = executor
        self.maximumConnections = max(1, maximumConnections)
        self.logger = logger
        self.whenInactive = whenInactive
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        executor?.socketWasRead()
        connectionCount += 1
        if connectionCount == maximumConnections {
            logger.notice("Connection limit reached; accepting pauses", metadata: ["limit": "\(maximumConnections)"])
        }
        updateReading()
        context.fireChannelRead(data)
    }

    /// A connection's place has become free.
    func releaseConnection() {
        connectionCount -= 1
        updateReading()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        logger.error("Accepting a connection failed", metadata: ["error": "\(error)"])
        guard !isPausedAfterError else { return }
        isPausedAfterError = true
        updateReading()
        context.eventLoop.assumeIsolated().scheduleTask(in: AcceptHandler.pauseAfterError) {
            self.isPausedAfterError = false
            self.updateReading()
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        whenInactive()
        context.fireChannelInactive()
    }

    private func updateReading() {
        let shouldRead = connectionCount < maximumConnections && !isPausedAfterError
        guard shouldRead != isReading else { return }
        isReading = shouldRead
        // Fails only when the socket is closed, and then nothing is read.
        try? context?.channel.syncOptions?.setOption(.autoRead, value: shouldRead)
    }
}
