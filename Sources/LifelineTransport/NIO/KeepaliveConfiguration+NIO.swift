internal import Glibc
internal import LifelineCore
internal import NIOCore

extension KeepaliveConfiguration {
    /// Returns the options for a TCP socket: none when the kernel should not watch.
    static func socketOptions(
        of configuration: KeepaliveConfiguration?
    ) -> [(option: ChannelOptions.Types.SocketOption, value: SocketOptionValue)] {
        guard let configuration else { return [] }
        let options = [
            (ChannelOptions.Types.SocketOption.socketOption(.so_keepalive), 1),
            (tcpOption(TCP_KEEPIDLE), configuration.idleSeconds),
            (tcpOption(TCP_KEEPINTVL), configuration.intervalSeconds),
            (tcpOption(TCP_KEEPCNT), configuration.probeCount),
            (tcpOption(TCP_USER_TIMEOUT), configuration.unacknowledgedMilliseconds),
        ]
        return options.map { (option: $0, value: SocketOptionValue($1)) }
    }

    private static func tcpOption(_ name: Int32) -> ChannelOptions.Types.SocketOption {
        .tcpOption(NIOBSDSocket.Option(rawValue: name))
    }
}
