package import LifelineCore
internal import NIOConcurrencyHelpers
package import NIOCore
internal import NIOPosix

/// TCP and Unix sockets on SwiftNIO's event loops.
///
/// Every connection belongs to one loop; connections are spread over the group's loops in turn.
package struct NIOTransport: Transport {
    private let group: any EventLoopGroup

    /// Uses the process-wide loops, one for each core.
    package static let shared = NIOTransport(group: MultiThreadedEventLoopGroup.singleton)

    package init(group: any EventLoopGroup) {
        self.group = group
    }

    package func connect<Receiver: FrameReceiver>(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        makeReceiver: @escaping @Sendable () -> Receiver
    ) async throws -> OpenedConnection<Receiver.Inbox> {
        let attempt = ConnectAttempt()
        let deadline = NIODeadline.now() + TimeAmount(options.connectTimeout)
        typealias Handler = NIOLoopBound<ConnectionHandler<Receiver>>
        // Of each channel: there is one for each address that is tried.
        let handlers = NIOLockedValueBox<[ObjectIdentifier: EventLoopFuture<Handler>]>([:])
        let opened = try connectChannel(to: endpoint, options: options) { channel in
            try attempt.begin(channel)
            let handler = try Self.addHandler(to: channel, behind: options.layers, deadline: deadline) {
                ConnectionHandler(receiver: makeReceiver(), options: options)
            }
            handlers.withLockedValue { $0[ObjectIdentifier(channel)] = handler }
        }.flatMap { channel in
            let handler = handlers.withLockedValue { $0[ObjectIdentifier(channel)] }
            return (handler ?? channel.eventLoop.makeFailedFuture(HandshakeCut())).map {
                OpenedConnection(
                    channel: channel,
                    handler: $0.value,
                    endpoint: endpoint,
                    isProxied: options.proxyAddress != nil
                )
            }
        }
        let outcome = Latch<Result<OpenedConnection<Receiver.Inbox>, any Error>>()
        opened.whenComplete { outcome.open(with: $0) }
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

    /// Adds the handler of a channel that will be connected, and the layers below it as soon as that has happened: what the
    /// peer says, and its end, may come before whoever connects hears of the connection.
    ///
    /// - Returns: the handler, once it is added. The peer may have closed the connection since.
    private static func addHandler<Receiver: FrameReceiver>(
        to channel: any Channel,
        behind layers: [any ChannelLayer],
        deadline: NIODeadline,
        makeHandler: @escaping @Sendable () -> ConnectionHandler<Receiver>
    ) throws -> EventLoopFuture<NIOLoopBound<ConnectionHandler<Receiver>>> {
        let added = channel.eventLoop.makePromise(of: NIOLoopBound<ConnectionHandler<Receiver>>.self)
        let add: (any Channel) throws -> Void = { channel in
            let handler = makeHandler()
            try channel.pipeline.syncOperations.addHandler(handler)
            added.succeed(NIOLoopBound(handler, eventLoop: channel.eventLoop))
        }
        if layers.isEmpty {
            try add(channel)
        } else {
            try channel.pipeline.syncOperations.addHandler(
                ActiveHandler {
                    $0.addLayers(layers, deadline: deadline, completion: add).whenFailure { added.fail($0) }
                }
            )
            // One that is never connected.
            channel.closeFuture.whenComplete { _ in added.fail(HandshakeCut()) }
        }
        return added.futureResult
    }

    private func connectChannel(
        to endpoint: Endpoint,
        options: ConnectionOptions,
        initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws(ConnectionError) -> EventLoopFuture<any Channel> {
        var bootstrap = ClientBootstrap(group: group)
            .connectTimeout(TimeAmount(options.connectTimeout))
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelOption(.maxMessagesPerRead, value: NIOTransport.readsPerTick)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initialize(channel) }
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
            makeReceiver: makeReceiver
        )
    }

    /// One read a tick, so that back-pressure takes hold after at most one more read. NIO's adaptive allocator makes that
    /// up to 64 KiB on a busy connection and keeps an idle one small.
    static let readsPerTick: UInt = 1
}

extension OpenedConnection {
    /// Call it on the channel's loop.
    init<Receiver: FrameReceiver>(
        channel: any Channel,
        handler: ConnectionHandler<Receiver>,
        endpoint: Endpoint,
        isProxied: Bool = false
    ) where Receiver.Inbox == Inbox {
        self.init(
            connection: NIOTransportConnection(
                channel: channel,
                handler: handler,
                endpoint: endpoint,
                isProxied: isProxied
            ),
            inbox: handler.inbox
        )
    }
}
