package import LifelineCore
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
        let opened: EventLoopFuture<OpenedConnection<Receiver.Inbox>>
        let deadline = NIODeadline.now() + TimeAmount(options.connectTimeout)
        let addHandler: @Sendable (any Channel) throws -> Void = { channel in
            let handler = ConnectionHandler(receiver: makeReceiver(), options: options)
            try channel.pipeline.syncOperations.addHandler(handler)
        }
        opened = try connectChannel(to: endpoint, options: options) { channel in
            try attempt.begin(channel)
            // Without layers it must be there before the first byte is read.
            if options.layers.isEmpty { try addHandler(channel) }
        }.flatMap { channel in
            let layersAdded =
                options.layers.isEmpty
                ? channel.eventLoop.makeSucceededVoidFuture()
                : channel.addLayers(options.layers, deadline: deadline, completion: addHandler)
            // Added here, on the loop, it runs before the next byte is read: the peer may close with it, and no handler is
            // left then.
            return layersAdded.flatMapThrowing {
                let handler = try channel.pipeline.syncOperations.handler(type: ConnectionHandler<Receiver>.self)
                return OpenedConnection(
                    channel: channel,
                    handler: handler,
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
