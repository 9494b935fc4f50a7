internal import Glibc
package import NIOCore

/// Tells how many written bytes the peer's TCP has acknowledged, even after the channel has closed its socket.
///
/// It holds a duplicate of the descriptor, because a channel may have closed its own by the time it reports a failed
/// connection. The socket stays open until both are closed. So release the watch at once when the connection failed, or
/// when the last bytes have arrived or will not.
final class SocketWatch {
    private enum Source {
        /// A duplicate descriptor.
        case socket(CInt)
        case channel(any AcknowledgedChannel)
    }

    private let source: Source
    /// The kernel's count when the watch was made. The SYN counts as a byte on the side that sent it first.
    private let baseline: UInt64

    /// Makes a watch; nil when the channel has no TCP socket, or no descriptor is available.
    static func watch(_ channel: any Channel) -> SocketWatch? {
        if let channel = channel as? any AcknowledgedChannel { return SocketWatch(channel) }
        return withSocket(of: channel) { SocketWatch($0) } ?? nil
    }

    private init(_ channel: any AcknowledgedChannel) {
        source = .channel(channel)
        baseline = channel.acknowledgedByteCount
    }

    private init?(_ socket: CInt) {
        let descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        guard let information = TCPSocket.information(on: descriptor) else {
            _ = Glibc.close(descriptor)
            return nil
        }
        source = .socket(descriptor)
        self.baseline = information.acknowledgedByteCount
    }

    deinit {
        if case .socket(let descriptor) = source { _ = Glibc.close(descriptor) }
    }

    /// Bytes that the peer's TCP has acknowledged since the watch was made; one more when the end of this side was
    /// acknowledged.
    var acknowledgedByteCount: UInt64 {
        switch source {
        case .socket(let descriptor):
            (TCPSocket.information(on: descriptor)?.acknowledgedByteCount ?? baseline) - baseline
        case .channel(let channel): channel.acknowledgedByteCount - baseline
        }
    }

    /// Whether the kernel is done with the connection, so that nothing more is acknowledged.
    var isOver: Bool {
        switch source {
        case .socket(let descriptor): TCPSocket.information(on: descriptor).map { $0.state == UInt8(TCP_CLOSE) } ?? true
        case .channel(let channel): channel.isDone
        }
    }

    /// Ends this side. Closing the channel's own descriptor does not, while this one is open.
    func endOutput() {
        // Closing a channel without a descriptor has ended it.
        if case .socket(let descriptor) = source { _ = shutdown(descriptor, Int32(SHUT_WR)) }
    }
}

/// A channel without a socket of the kernel that knows which bytes its peer has acknowledged, as those of a simulation
/// do.
package protocol AcknowledgedChannel: Channel {
    /// The number of written bytes that the peer has acknowledged, also after the channel was closed.
    var acknowledgedByteCount: UInt64 { get }
    /// The number of bytes that were taken to be sent and that the peer has not acknowledged.
    var unacknowledgedByteCount: UInt64 { get }
    /// Whether nothing more is acknowledged.
    var isDone: Bool { get }
}
