internal import LifelineCore
internal import NIOCore
internal import NIOPosix

/// Makes channels with the kernel's sockets.
struct SocketChannels: ChannelMaker {
    func connect(
        to address: Endpoint.Address,
        on group: any EventLoopGroup,
        keepalive: KeepaliveConfiguration?,
        timeout: Duration,
        initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws(ConnectionError) -> EventLoopFuture<any Channel> {
        var bootstrap = ClientBootstrap(group: group)
            .connectTimeout(TimeAmount(timeout))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initialize(channel) }
            }
        switch address {
        case .tcp(let host, let port):
            for (option, value) in KeepaliveConfiguration.socketOptions(of: keepalive) {
                bootstrap = bootstrap.channelOption(option, value: value)
            }
            return bootstrap.channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: port)
        case .unix(let path):
            return bootstrap.connect(to: try UnixSocketFile.socketAddress(of: path))
        }
    }

    func listen(
        on address: Endpoint.Address,
        loop: any EventLoop,
        group: any EventLoopGroup,
        backlog: Int32,
        keepalive: KeepaliveConfiguration?,
        initializeListener: @escaping @Sendable (any Channel) throws -> Void,
        initializeConnection: @escaping @Sendable (any Channel) throws -> Void
    ) async throws -> any Channel {
        var bootstrap = ServerBootstrap(group: loop, childGroup: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initializeListener(channel) }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try initializeConnection(channel) }
            }
        switch address {
        case .tcp(let host, let port):
            // Not on a thread of the concurrency runtime, because the name service may take time.
            let address = try await NIOThreadPool.singleton.runIfActive {
                try SocketAddress.makeAddressResolvingHost(host, port: port)
            }
            // On Linux an accepted socket inherits these from the listening one, without a call for each.
            bootstrap = bootstrap.serverChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            for (option, value) in KeepaliveConfiguration.socketOptions(of: keepalive) {
                bootstrap = bootstrap.serverChannelOption(option, value: value)
            }
            return
                try await bootstrap
                // A port whose last connections are in TIME_WAIT can be listened on again.
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .bind(to: address).get()
        case .unix(let path):
            return try await bootstrap.withBoundSocket(UnixSocketFile.listen(at: path, backlog: backlog)).get()
        }
    }
}
