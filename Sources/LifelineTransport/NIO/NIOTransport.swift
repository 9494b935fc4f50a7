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
    private let channels: any ChannelMaker
    package let executor: (any TaskExecutor)?

    /// Uses the process-wide loops, one for each core.
    private static let process = NIOTransport(group: MultiThreadedEventLoopGroup.singleton)

    /// The transport of the simulated host on which the task runs; nil on the real host.
    @TaskLocal package static var simulated: NIOTransport?

    /// The default transport.
    package static var shared: NIOTransport { simulated ?? process }

    package init(group: any EventLoopGroup) { self.init(group: group, channels: SocketChannels()) }

    package init(group: any EventLoopGroup, channels: any ChannelMaker) {
        self.group = group
        self.channels = channels
        executors = LoopExecutors(group)
        executor = nil
    }

    private init(_ transport: NIOTransport, on loop: any EventLoop) {
        group = loop
        (executors, channels) = (transport.executors, transport.channels)
        executor = executors[loop]
    }

    /// Returns the transport with a single loop for all connections, the group's next one.
    package func onOneLoop() -> NIOTransport { NIOTransport(self, on: group.next()) }

    /// The loop of the next connection; with `onOneLoop()`, the loop of all.
    package var loop: any EventLoop { group.next() }

    package func connect<Receiver: FrameReceiver>(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> OpenedConnection<Receiver.Inbox> {
        let route = Route(to: endpoint, options)
        return try await open(route) { channel, attempt, outcome in
            let executor = executors[channel.eventLoop]
            let handler = ConnectionHandler(receiver: makeReceiver(), options: options) { handler, channel in
                if options.layers.isEmpty, !attempt.claim() { return }
                let isProxied = options.proxyAddress != nil
                let opened = handler.open(channel, endpoint: endpoint, isProxied: isProxied, executor: executor)
                outcome.open(with: .success(opened))
            }
            if options.layers.isEmpty {
                try handler.readIntoSharedBuffer(of: channel)
                return try channel.pipeline.syncOperations.addHandler(handler)
            }
            try route.addLayers(to: channel, attempt, outcome) { try $0.pipeline.syncOperations.addHandler(handler) }
        }
    }

    /// Connects to an endpoint for a protocol other than that of frames. Cancelling the task gives up the attempt with
    /// `CancellationError`. When this throws, no socket of the attempt is left in the kernel.
    ///
    /// - Parameters:
    ///   - layers: the layers between the socket and the protocol, from the socket on.
    ///   - timeout: the time that it may take, including the layers' handshakes.
    ///   - addHandlers: adds the protocol's handlers to a connected channel, on its loop, before any byte is read.
    /// - Throws: `ConnectionError`, `CancellationError`, or what `addHandlers` throws.
    package func openChannel(
        to endpoint: Endpoint,
        layers: [any ChannelLayer],
        keepalive: KeepaliveConfiguration?,
        timeout: Duration,
        addHandlers: @escaping @Sendable (any Channel) throws -> Void
    ) async throws {
        let route = Route(endpoint: endpoint, layers: layers, keepalive: keepalive, timeout: timeout)
        try await open(route) { channel, attempt, outcome in
            try route.addLayers(to: channel, attempt, outcome) {
                try addHandlers($0)
                outcome.open(with: .success(()))
            }
        }
    }

    /// Connects, and waits until `initialize` has opened the outcome.
    private func open<Opened: Sendable>(
        _ route: Route,
        initialize: @escaping @Sendable (any Channel, ConnectAttempt, Latch<Result<Opened, any Error>>) throws -> Void
    ) async throws -> Opened {
        let attempt = ConnectAttempt()
        let outcome = Latch<Result<Opened, any Error>>()
        try channels.connect(
            to: route.proxyAddress ?? route.endpoint.address,
            on: group,
            keepalive: route.keepalive,
            timeout: route.timeout
        ) { channel in
            try channel.setConnectionOptions()
            try attempt.begin(channel)
            try initialize(channel, attempt, outcome)
        }.whenComplete { result in
            switch result {
            case .failure(let error): outcome.open(with: .failure(error))
            case .success(let channel):
                // This has no effect if the connection was opened before.
                channel.closeFuture.whenComplete { _ in outcome.open(with: .failure(HandshakeCut())) }
            }
        }
        do {
            return try await outcome.wait().get()
        } catch {
            await attempt.giveUp()
            if error is CancellationError { throw error }
            throw ConnectionError(
                connecting: route.endpoint,
                through: route.proxyAddress,
                failedWith: error,
                timeout: route.timeout
            )
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
            channels: channels,
            makeReceiver: makeReceiver
        )
    }
}

/// The address to connect to, and the layers between the socket and the protocol.
private struct Route: Sendable {
    let endpoint: Endpoint
    var proxyAddress: Endpoint.Address?
    let layers: [any ChannelLayer]
    let keepalive: KeepaliveConfiguration?
    let timeout: Duration
    private let deadline: NIODeadline

    init(endpoint: Endpoint, layers: [any ChannelLayer], keepalive: KeepaliveConfiguration?, timeout: Duration) {
        (self.endpoint, self.layers, self.keepalive, self.timeout) = (endpoint, layers, keepalive, timeout)
        deadline = .now() + TimeAmount(timeout)
    }

    init(to endpoint: Endpoint, _ options: ConnectionOptions) {
        self.init(
            endpoint: endpoint,
            layers: options.layers,
            keepalive: options.keepalive,
            timeout: options.connectTimeout
        )
        proxyAddress = options.proxyAddress
    }

    /// Adds the layers as soon as the channel is connected, because bytes and the end of the peer may come before the
    /// connecting task is notified. Then `completion` adds the handlers above them.
    func addLayers<Opened>(
        to channel: any Channel,
        _ attempt: ConnectAttempt,
        _ outcome: Latch<Result<Opened, any Error>>,
        completion: @escaping (any Channel) throws -> Void
    ) throws {
        try channel.pipeline.syncOperations.addHandler(
            ActiveHandler { channel in
                guard attempt.claim() else { return }
                channel.addLayers(layers, deadline: deadline, completion: completion)
                    .whenFailure { outcome.open(with: .failure($0)) }
            }
        )
    }
}

extension Channel {
    /// Sets the options that all connections' channels have in common. Call it on the loop. It replaces a bootstrap's
    /// options, for which SwiftNIO makes futures: both together take 4,400 instructions instead of 19,500.
    func setConnectionOptions() throws {
        let options = syncOptions
        try options?.setOption(.allowRemoteHalfClosure, value: true)
        // One read in a tick, so that back-pressure takes effect after at most one more read. With layers, NIO's
        // adaptive allocator makes a read up to 64 KiB on a busy connection, and keeps that of an idle one small.
        try options?.setOption(.maxMessagesPerRead, value: 1)
    }
}

extension ConnectionHandler {
    /// Makes the handle of an open connection, and informs the receiver. Runs on the channel's loop, before the first
    /// read.
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
