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
        guard let baseline = SocketWatch.acknowledgedByteCount(descriptor) else {
            _ = Glibc.close(descriptor)
            return nil
        }
        self.baseline = baseline
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    /// Bytes that the peer's TCP has acknowledged since the watch was made; one more when our end was acknowledged.
    var acknowledgedByteCount: UInt64 {
        (SocketWatch.acknowledgedByteCount(descriptor) ?? baseline) - baseline
    }

    /// `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h, since Linux 4.2), which Glibc's own struct ends before.
    private static func acknowledgedByteCount(_ descriptor: CInt) -> UInt64? {
        let (offset, size) = (120, 8)
        return withUnsafeTemporaryAllocation(byteCount: offset + size, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                Int(length) == info.count
            else { return nil }
            return info.load(fromByteOffset: offset, as: UInt64.self)
        }
    }
}
