internal import Glibc

/// A last look at a TCP socket: how much of what was written the peer's TCP has acknowledged, even after the channel
/// has closed the socket.
///
/// It holds a duplicate of the descriptor, for a channel may have closed its own by the time it says that the
/// connection failed. The socket stays open until both are closed: let go of the watch as soon as nothing more is
/// waited for, at once when the connection failed, or when what was written last has arrived or will not.
final class SocketWatch {
    private let descriptor: CInt
    /// What the kernel counted when the watch was made: the SYN counts as a byte on the side that sent it first.
    private let baseline: UInt64

    /// Nil when the socket is none of TCP's, or when no descriptor is to be had.
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

    /// Bytes that the peer's TCP has acknowledged since the watch was made; one more when our end was acknowledged.
    var acknowledgedByteCount: UInt64 {
        (TCPSocket.information(on: descriptor)?.acknowledgedByteCount ?? baseline) - baseline
    }

    /// Whether the kernel is done with the connection, so that nothing is acknowledged any more.
    var isOver: Bool {
        TCPSocket.information(on: descriptor).map { $0.state == UInt8(TCP_CLOSE) } ?? true
    }

    /// Ends our side, which the channel's closing its own descriptor does not do while there is this one.
    func endOutput() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }
}
