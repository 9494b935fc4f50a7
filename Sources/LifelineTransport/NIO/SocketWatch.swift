internal import Glibc

/// Tells how many written bytes the peer's TCP has acknowledged, even after the channel has closed its socket.
///
/// It holds a duplicate of the descriptor, because a channel may have closed its own by the time it reports a failed
/// connection. The socket stays open until both are closed. So release the watch at once when the connection failed, or
/// when the last bytes have arrived or will not.
final class SocketWatch {
    private let descriptor: CInt
    /// The kernel's count when the watch was made. The SYN counts as a byte on the side that sent it first.
    private let baseline: UInt64

    /// Makes a watch; nil when the socket is not a TCP socket, or no descriptor is available.
    init?(_ socket: CInt) {
        descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        guard let information = TCPSocket.information(on: descriptor) else {
            _ = Glibc.close(descriptor)
            return nil
        }
        self.baseline = information.acknowledgedByteCount
    }

    deinit {
        _ = Glibc.close(descriptor)
    }

    /// Bytes that the peer's TCP has acknowledged since the watch was made; one more when the end of this side was
    /// acknowledged.
    var acknowledgedByteCount: UInt64 {
        (TCPSocket.information(on: descriptor)?.acknowledgedByteCount ?? baseline) - baseline
    }

    /// Whether the kernel is done with the connection, so that nothing more is acknowledged.
    var isOver: Bool {
        TCPSocket.information(on: descriptor).map { $0.state == UInt8(TCP_CLOSE) } ?? true
    }

    /// Ends this side. Closing the channel's own descriptor does not, while this one is open.
    func endOutput() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }
}
