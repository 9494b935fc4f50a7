internal import Glibc

/// A last look at a TCP socket: how much of what was written the peer's TCP has acknowledged, even after the channel has
/// closed the socket.
///
/// It holds a duplicate of the descriptor, for a channel may have closed its own by the time it says that the connection
/// failed. The socket stays open until both are closed: let go of the watch as soon as the channel is inactive.
final class SocketWatch {
    private let descriptor: CInt
    /// What the kernel counted when the watch was made: the SYN counts as a byte on the side that sent it first.
    private let baseline: UInt64

    /// Nil when the socket is none of TCP's, or when no descriptor is to be had.
    init?(_ socket: CInt) {
        descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        guard let info = SocketWatch.information(on: descriptor) else {
            _ = Glibc.close(descriptor)
            return nil
        }
        self.baseline = info.acknowledgedByteCount
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    /// Bytes that the peer's TCP has acknowledged since the watch was made; one more when our end was acknowledged.
    var acknowledgedByteCount: UInt64 {
        (SocketWatch.information(on: descriptor)?.acknowledgedByteCount ?? baseline) - baseline
    }

    /// Whether the kernel is done with the connection, so that nothing is acknowledged any more.
    var isOver: Bool {
        SocketWatch.information(on: descriptor).map { $0.state == UInt8(TCP_CLOSE) } ?? true
    }

    /// Ends our side, which the channel's closing its own descriptor does not do while there is this one.
    func endOutput() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// `tcpi_state` and `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h, since Linux 4.2), which Glibc's own struct
    /// ends before.
    private static func information(on descriptor: CInt) -> (state: UInt8, acknowledgedByteCount: UInt64)? {
        let (offset, size) = (120, 8)
        return withUnsafeTemporaryAllocation(byteCount: offset + size, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                Int(length) == info.count
            else { return nil }
            return (info.load(as: UInt8.self), info.load(fromByteOffset: offset, as: UInt64.self))
        }
    }
}
