internal import Glibc
internal import Logging
internal import NIOCore

/// Lets a listening socket accept while there is room for a connection.
///
/// At the limit, newcomers make way: connections whose peers have sent nothing. If there are none, and for a moment
/// after the process has run out of descriptors or memory, the socket is not read, and new clients wait in the kernel's
/// backlog.
final class AcceptHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel

    /// How long to wait after a failed accept: long enough not to spin, short enough not to be noticed.
    private static let pauseAfterError = TimeAmount.milliseconds(100)
    /// SwiftNIO's default.
    private static let mostAcceptsPerRead = 4

    /// The most connections that may be making way at once, because their handlers may take time.
    private static let mostMakingWay = 16

    private let maximumConnections: Int
    private let newcomers: Newcomers?
    /// The upper bound of connections that were told to make way and have not ended.
    private var makingWayCount = 0
    private var hasLoggedLimit = false
    private let logger: Logger
    private let executor: LoopExecutor?
    private let whenInactive: () -> Void
    private var context: ChannelHandlerContext?
    private var connectionCount = 0
    private var isPausedAfterError = false
    private(set) var isReading = true
    /// The most connections that a read accepts. Set before the first one.
    private(set) var acceptsPerRead: UInt = 0

    /// - Parameters:
    ///   - newcomers: the connections that make way at the limit; nil if none do.
    ///   - executor: runs tasks on the loop.
    init(
        maximumConnections: Int,
        newcomers: Newcomers? = nil,
        logger: Logger,
        executor: LoopExecutor? = nil,
        whenInactive: @escaping () -> Void
    ) {
        self.executor = executor
        self.maximumConnections = max(1, maximumConnections)
        self.newcomers = newcomers
        self.logger = logger
        self.whenInactive = whenInactive
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let (loop, bound) = (context.eventLoop, NIOLoopBound(self, eventLoop: context.eventLoop))
        newcomers?.setArrivalHandler {
            loop.execute { bound.value.newcomerArrived() }
        }
        updateReading()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        newcomers?.setArrivalHandler(nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        executor?.socketWasRead()
        connectionCount += 1
        if connectionCount == maximumConnections, !hasLoggedLimit {
            hasLoggedLimit = true
            logger.notice("Connection limit reached", metadata: ["limit": "\(maximumConnections)"])
        }
        makeRoom()
        updateReading()
        context.fireChannelRead(data)
    }

    /// Notes that a connection can make way, after there was none.
    private func newcomerArrived() {
        makeRoom()
        updateReading()
    }

    /// Makes newcomers make way for connections accepted beyond the limit.
    private func makeRoom() {
        while room < 0, makingWayCount < AcceptHandler.mostMakingWay, newcomers?.makeRoom() == true {
            makingWayCount += 1
        }
    }

    /// Notes that a connection's place has become free.
    func releaseConnection() {
        connectionCount -= 1
        if makingWayCount > 0 { makingWayCount -= 1 }
        // Do not log each time that a place is free for a moment.
        if connectionCount <= maximumConnections / 2 { hasLoggedLimit = false }
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

    /// The room for connections, once those that make way have ended.
    private var room: Int { maximumConnections - connectionCount + makingWayCount }

    private var canMakeRoom: Bool {
        guard let newcomers, makingWayCount < AcceptHandler.mostMakingWay else { return false }
        return newcomers.areWaiting
    }

    /// Setting either option fails only when the socket is closed, and then nothing is read.
    private func updateReading() {
        // A read that has begun goes on to its end, so it must not exceed the limit.
        let room = room
        let acceptCount = UInt(min(max(1, room), AcceptHandler.mostAcceptsPerRead))
        if acceptCount != acceptsPerRead {
            acceptsPerRead = acceptCount
            try? context?.channel.syncOptions?.setOption(.maxMessagesPerRead, value: acceptCount)
        }
        let shouldRead = (room > 0 || canMakeRoom) && !isPausedAfterError
        if shouldRead != isReading {
            isReading = shouldRead
            try? context?.channel.syncOptions?.setOption(.autoRead, value: shouldRead)
        }
    }
}
