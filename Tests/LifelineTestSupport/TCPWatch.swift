internal import Glibc

/// The kernel's settings for watching the peer of one of this process's TCP sockets, read from the socket.
package struct TCPWatch: Sendable {
    /// `SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT` and `TCP_USER_TIMEOUT`.
    package let values: [CInt]
    /// `TCP_RTO_MAX_MS`, -1 if the kernel lacks it, and `TCP_THIN_LINEAR_TIMEOUTS`.
    package let retransmission: [CInt]

    /// Whether short messages are sent at once: `TCP_NODELAY`.
    package let sendsAtOnce: Bool

    /// Nil if this process has no socket between these ports.
    package init?(localPort: Int, remotePort: Int) {
        for descriptor in 0..<sysconf(Int32(_SC_OPEN_MAX)) {
            let descriptor = CInt(descriptor)
            guard TCPWatch.port(descriptor, getsockname) == localPort else { continue }
            guard TCPWatch.port(descriptor, getpeername) == remotePort else { continue }
            let tcp = CInt(IPPROTO_TCP)
            func value(_ option: (level: CInt, name: CInt)) -> CInt {
                var value: CInt = -1
                var length = socklen_t(MemoryLayout<CInt>.size)
                getsockopt(descriptor, option.level, option.name, &value, &length)
                return value
            }
            values = [
                (SOL_SOCKET, SO_KEEPALIVE), (tcp, TCP_KEEPIDLE), (tcp, TCP_KEEPINTVL), (tcp, TCP_KEEPCNT),
                (tcp, TCP_USER_TIMEOUT),
            ].map(value)
            sendsAtOnce = value((tcp, TCP_NODELAY)) == 1
            retransmission = [(tcp, 44), (tcp, TCP_THIN_LINEAR_TIMEOUTS)].map(value)
            return
        }
        return nil
    }

    private static func port(
        _ descriptor: CInt,
        _ name: (CInt, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> CInt
    ) -> Int? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name(descriptor, $0, &length) }
        }
        guard result == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
