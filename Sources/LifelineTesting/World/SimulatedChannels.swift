internal import Glibc
internal import LifelineCore
internal import LifelineTransport
internal import NIOCore

/// Makes the channels of a process of a world.
struct SimulatedChannels: ChannelMaker {
    let process: WorldProcess

    func connect(
        to address: Endpoint.Address,
        on group: any EventLoopGroup,
        keepalive: KeepaliveConfiguration?,
        timeout: Duration,
        initialize: @escaping @Sendable (any Channel) throws -> Void
    ) throws(ConnectionError) -> EventLoopFuture<any Channel> {
        guard case .tcp(let name, let port) = address else { throw .noUnixSockets }
        let connected = process.loop.makePromise(of: (any Channel).self)
        process.loop.runSoon { [process] in
            guard let world = process.world, let server = process.host.find(name) else {
                return connected.fail(ConnectionError.unknownHost(name, to: process.host))
            }
            let listener: any SimulatedListener =
                server.simulatedServer ?? server.process.listener(on: port) ?? world.closedPort(of: server)
            let stream = world.makeStream(to: listener, from: process.host)
            let channel = SimulatedChannel(.client, of: stream, process)
            channel.localAddress = world.address(of: process.host.machine, port: channel.clientPort)
            channel.remoteAddress = world.address(of: server.machine, port: port)
            do { try initialize(channel) } catch {
                channel.close0(error: error, mode: .all, promise: nil)
                return connected.fail(error)
            }
            channel.connect(timeout: timeout, connected)
        }
        return connected.futureResult
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
        guard case .tcp(let name, let port) = address else { throw ConnectionError.noUnixSockets }
        return try await loop.submit { [process] in
            guard let world = process.world, process.host.find(name) === process.host else {
                throw ConnectionError.unknownHost(name, to: process.host)
            }
            let port = port == 0 ? process.makePort() : port
            if process.listener(on: port) != nil { throw IOError(errnoCode: EADDRINUSE, reason: "bind") }
            let channel = SimulatedListeningChannel(
                on: port,
                of: process,
                backlog: Int(backlog),
                initializeConnection: initializeConnection
            )
            channel.localAddress = world.address(of: process.host.machine, port: port)
            try initializeListener(channel)
            process.setListener(channel, on: port)
            try channel.begin()
            return channel
        }
        .get()
    }
}

extension ConnectionError {
    fileprivate static var noUnixSockets: ConnectionError {
        ConnectionError(
            code: .invalidEndpoint,
            message: "A simulated world has no Unix sockets. Use a tcp endpoint with the name of a host of the world."
        )
    }

    fileprivate static func unknownHost(_ name: String, to host: WorldHost) -> ConnectionError {
        ConnectionError(
            code: .connectFailed,
            message: "The host \(name.escaped()) was not found by \(host.name). The world has "
                + "\(host.world?.hosts.map(\.name).joined(separator: ", ") ?? "ended")."
        )
    }
}

/// The host is gone, or nothing listens on the port.
final class ClosedPort: SimulatedListener {
    let host: SimulatedHost
    init(_ host: SimulatedHost) { self.host = host }
    func answer(_ stream: SimulatedStream) { stream.refuse(.connectionRefused) }
    func accepted(_ stream: SimulatedStream) -> (any StreamOwner)? { nil }
}
