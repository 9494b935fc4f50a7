internal import NIOCore

/// The common part of the channels of a world: those of connections, and those that listen.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
class SimulatedChannelBase: Channel, ChannelCore, @unchecked Sendable {
    let process: WorldProcess
    let loop: SimulatedLoop
    let parent: (any Channel)?
    var localAddress: SocketAddress?
    var remoteAddress: SocketAddress?
    private(set) var isOpen = true
    var isActive = false
    private(set) var isAutoReading = true
    private let closePromise: EventLoopPromise<Void>
    // Set once, after the channel exists, because it needs the channel.
    private var madePipeline: ChannelPipeline?

    init(_ process: WorldProcess, parent: (any Channel)?) {
        (self.process, self.parent) = (process, parent)
        loop = process.loop
        closePromise = loop.makePromise()
        madePipeline = ChannelPipeline(channel: self)
    }

    var allocator: ByteBufferAllocator { ByteBufferAllocator() }
    var closeFuture: EventLoopFuture<Void> { closePromise.futureResult }
    var pipeline: ChannelPipeline { madePipeline! }
    var eventLoop: any EventLoop { loop }
    var isWritable: Bool { true }
    var _channelCore: any ChannelCore { self }
    var syncOptions: (any NIOSynchronousChannelOptions)? { SynchronousOptions(channel: self) }

    /// Runs `body` on the loop, unless the process was killed meanwhile; later if its host sleeps.
    func onLoop(_ body: @escaping () -> Void) { process.perform { [loop] in loop.run(body) } }

    /// Closes the channel at once, if it is open.
    func closeNow() { close0(error: ChannelError.ioOnClosedChannel, mode: .all, promise: nil) }

    func becomeClosed() { (isOpen, isActive) = (false, false) }

    /// Tells the handlers that the channel is closed, and removes them.
    func announceClosed(wasActive: Bool) {
        if wasActive { pipeline.fireChannelInactive() }
        pipeline.fireChannelUnregistered()
        loop.runSoon {
            self.removeHandlers(pipeline: self.pipeline)
            self.closePromise.assumeIsolated().succeed(())
        }
    }

    // MARK: ChannelCore

    func localAddress0() throws -> SocketAddress {
        guard let localAddress else { throw ChannelError.operationUnsupported }
        return localAddress
    }

    func remoteAddress0() throws -> SocketAddress {
        guard let remoteAddress else { throw ChannelError.operationUnsupported }
        return remoteAddress
    }

    func register0(promise: EventLoopPromise<Void>?) { promise?.succeed(()) }
    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { promise?.succeed(()) }
    func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) {
        promise?.fail(ChannelError.operationUnsupported)
    }
    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
    func flush0() {}
    func read0() {}
    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {}
    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { promise?.succeed(()) }
    func channelRead0(_ data: NIOAny) {}
    func errorCaught0(error: any Error) {}

    // MARK: Options

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        eventLoop.makeCompletedFuture { try set(option, to: value) }
    }

    func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        eventLoop.makeCompletedFuture { try get(option) }
    }

    func set<Option: ChannelOption>(_ option: Option, to value: Option.Value) throws {
        switch (option, value) {
        case (is ChannelOptions.Types.AutoReadOption, let value as Bool):
            let begins = value && !isAutoReading
            isAutoReading = value
            if begins, isActive { pipeline.read() }
        case (is ChannelOptions.Types.MaxMessagesPerReadOption, _):
            // Here, a read delivers one message.
            break
        default:
            throw ChannelError.operationUnsupported
        }
    }

    func get<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard option is ChannelOptions.Types.AutoReadOption, let value = isAutoReading as? Option.Value else {
            throw ChannelError.operationUnsupported
        }
        return value
    }

    private struct SynchronousOptions: NIOSynchronousChannelOptions {
        let channel: SimulatedChannelBase

        func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws {
            try channel.set(option, to: value)
        }

        func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value { try channel.get(option) }
    }
}
