package import LifelineCore
internal import LifelineRuntime
package import NIOCore
internal import NIOPosix

/// TCP and Unix sockets on SwiftNIO's event loops.
///
/// Every connection belongs to one loop; connections are spread over the group's loops in turn.
package struct NIOTransport: Transport {
    private let group: any EventLoopGroup
    private let executors: LoopExecutors
    package let executor: (any TaskExecutor)?

    /// Uses the process-wide loops, one for each core.
    package static let shared = NIOTransport(group: MultiThreadedEventLoopGroup.singleton)

    package init(group: any EventLoopGroup) {
        self.group = group
        executors = LoopExecutors(group)
        executor = nil
    }

    private init(loop: any EventLoop, of executors: LoopExecutors) {
        group = loop
        self.executors = executors
        executor = executors[loop]
    }

    /// The same with one loop for all connections, the group's next one.
    package func onOneLoop() -> NIOTransport { NIOTransport(loop: group.next(), of: executors) }

    package func connect<Receiver: FrameReceiver>(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> OpenedConnection<Receiver.Inbox> {
        let attempt = ConnectAttempt()
        let deadline = NIODeadline.now() + TimeAmount(options.connectTimeout)
        let outcome = Latch<Result<OpenedConnection<Receiver.Inbox>, any Error>>()
        try connectChannel(to: endpoint, options: options) { channel in
            try attempt.begin(channel)
            let executor = executors[channel.eventLoop]
            let handler = ConnectionHandler(receiver: makeReceiver(), options: options) { handler, channel in
                if options.layers.isEmpty, !attempt.claim() { return }
                let isProxied = options.proxyAddress != nil
                let opened = handler.open(channel, endpoint: endpoint, isProxied: isProxied, executor: executor)
                outcome.open(with: .success(opened))
            }
            let pipeline = channel.pipeline.syncOperations
            if options.layers.isEmpty {
                try handler.readIntoSharedBuffer(of: channel)
                return try pipeline.addHandler(handler)
            }
            // As soon as it is connected: what the peer says, and its end, may come before whoever connects hears of
            // it.
            try pipeline.addHandler(
                ActiveHandler { channel in
                    guard attempt.claim() else { return }
                    channel.addLayers(options.layers, deadline: deadline) {
                        try $0.pipeline.syncOperations.addHandler(handler)
                    }
                    .whenFailure { outcome.open(with: .failure($0)) }
                }
            )
        }.whenComplete { result in
            switch result {
            case .failure(let error): outcome.open(with: .failure(error))
            case .success(let channel):
                // Means nothing where it has come to stand before.
                channel.closeFuture.whenComplete { _ in outcome.open(with: .failure(HandshakeCut())) }
            }
        }
        do {
            return try await outcome.wait().get()
        } catch {
            await attempt.giveUp()
            if error is CancellationError { throw error }
            throw ConnectionError(
                connecting: endpoint,
                through: options.proxyAddress,
                failedWith: error,
                timeout: options.connectTimeout
            )
        }
    }

    private func connectChannel(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws(ConnectionError) -> EventLoopFuture<any Channel> {
        var bootstrap = ClientBootstrap(group: group)
            .connectTimeout(TimeAmount(options.connectTimeout))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.setConnectionOptions()
                    try initialize(channel)
                }
            }
        switch options.proxyAddress ?? endpoint.address {
        case .tcp(let host, let port):
            for (option, value) in KeepaliveConfiguration.socketOptions(of: options.keepalive) {
                bootstrap = bootstrap.channelOption(option, value: value)
            }
            return bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: port)
        case .unix(let path):
            return bootstrap.connect(to: try UnixSocketFile.socketAddress(of: path))
        }
    }

    package func listen<Receiver: FrameReceiver>(
        on endpoint: Endpoint,
        options: ListenerOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws(ConnectionError) -> any TransportListener<Receiver.Inbox> {
        try await NIOTransportListener<Receiver>.listen(
            on: endpoint,
            options: options,
            group: group,
            executors: executors,
            makeReceiver: makeReceiver
        )
    }
}

extension Channel {
    /// Sets what all connections' channels have in common. Call it on the loop. In place of a bootstrap's options, for
    /// which SwiftNIO makes futures: 4,400 instructions for both, and not 19,500.
    func setConnectionOptions() throws {
        let options = syncOptions
        try options?.setOption(.allowRemoteHalfClosure, value: true)
        // One read a tick, so that back-pressure takes hold after at most one more read. Behind layers NIO's adaptive
        // allocator makes that up to 64 KiB on a busy connection and keeps an idle one small.
        try options?.setOption(.maxMessagesPerRead, value: 1)
    }
}

extension ConnectionHandler {
    /// The connection stands: makes its handle, and tells the receiver. On the channel's loop, before the first read.
    func open(
        _ channel: any Channel,
        endpoint: Endpoint,
        isProxied: Bool,
        executor: LoopExecutor?
    ) -> OpenedConnection<Receiver.Inbox> {
        self.executor = executor
        let connection = NIOTransportConnection(
            channel: channel,
            handler: self,
            endpoint: endpoint,
            isProxied: isProxied,
            executor: executor
        )
        receiver.opened(connection)
        return OpenedConnection(connection: connection, inbox: inbox)
    }
}
