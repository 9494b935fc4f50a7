internal import LifelineCore
internal import NIOCore

/// A channel that listens on a port of a host of a world.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SimulatedListeningChannel: SimulatedChannelBase, @unchecked Sendable, SimulatedListener {
    let port: Int
    private let backlog: Int
    private let initializeConnection: (any Channel) throws -> Void
    /// Accepted connections that are not passed to the handlers yet.
    private var waiting: [SimulatedChannel] = []
    private var wantsRead = false

    /// On the loop.
    init(
        on port: Int,
        of process: WorldProcess,
        backlog: Int,
        initializeConnection: @escaping (any Channel) throws -> Void
    ) {
        (self.port, self.backlog, self.initializeConnection) = (port, backlog, initializeConnection)
        super.init(process, parent: nil)
    }

    /// The process is killed: the kernel accepts no more connections.
    func abandon() { isActive = false }

    /// Starts to listen, after the handlers are in the pipeline.
    func begin() throws {
        try pipeline.syncOperations.addHandler(ConnectionSetUp())
        isActive = true
        pipeline.fireChannelActive()
        if isAutoReading { pipeline.read() }
    }

    // MARK: SimulatedListener

    var host: SimulatedHost { process.host.machine }

    func answer(_ stream: SimulatedStream) {
        guard isActive else { return stream.refuse(.connectionRefused) }
        // As on Linux: without an answer, the client tries again.
        waiting.count < backlog ? stream.accept() : stream.ignore()
    }

    func accepted(_ stream: SimulatedStream) -> (any StreamOwner)? {
        guard isActive else { return nil }
        host.note(.connection(stream.number, .accepted))
        let channel = SimulatedChannel(.server, of: stream, process, parent: self)
        channel.localAddress = localAddress
        channel.remoteAddress = process.world?.address(of: stream.clientHost, port: channel.clientPort)
        waiting.append(channel)
        onLoop { self.readOn() }
        return channel
    }

    override func read0() {
        wantsRead = true
        onLoop { self.readOn() }
    }

    private func readOn() {
        while wantsRead, isActive, !waiting.isEmpty {
            wantsRead = false
            pipeline.fireChannelRead(waiting.removeFirst())
            pipeline.fireChannelReadComplete()
            if isAutoReading, isActive { pipeline.read() }
        }
    }

    fileprivate func setUp(_ channel: SimulatedChannel) {
        do {
            try initializeConnection(channel)
            // It may have been reset meanwhile.
            if channel.isOpen { channel.activate() }
        } catch {
            channel.close0(error: error, mode: .all, promise: nil)
        }
    }

    override func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard isOpen else {
            promise?.fail(ChannelError.alreadyClosed)
            return
        }
        becomeClosed()
        process.setListener(nil, on: port)
        for channel in waiting { channel.close0(error: error, mode: .all, promise: nil) }
        waiting = []
        promise?.assumeIsolated().succeed(())
        announceClosed(wasActive: true)
    }
}

/// Sets up accepted connections.
private final class ConnectionSetUp: ChannelInboundHandler {
    typealias InboundIn = SimulatedChannel

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let listener = context.channel as? SimulatedListeningChannel else { return }
        listener.setUp(unwrapInboundIn(data))
    }
}
