internal import Glibc
internal import LifelineCore

/// Functions of TCP sockets that Glibc and NIO do not offer.
enum TCPSocket {
    /// Returns the connection's state, and the number of bytes that the peer's TCP has acknowledged. The SYN counts on
    /// the side that sent it first, and so does the end of this side. Nil if the socket is not a TCP socket.
    static func information(on socket: CInt) -> (state: UInt8, acknowledgedByteCount: UInt64)? {
        // `tcpi_state` and `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h, since Linux 4.2), which are beyond the
        // end of Glibc's own struct.
        let (offset, size) = (120, 8)
        return withUnsafeTemporaryAllocation(byteCount: offset + size, alignment: 8) { info in
            var length = socklen_t(info.count)
            guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &length) == 0,
                Int(length) == info.count
            else { return nil }
            return (info.load(as: UInt8.self), info.load(fromByteOffset: offset, as: UInt64.self))
        }
    }

    /// Returns how many of the kernel's bytes the peer's TCP has not acknowledged; nil when the socket has no such
    /// number.
    static func unacknowledgedByteCount(on socket: CInt) -> UInt64? {
        // `SIOCOUTQ` of linux/sockios.h.
        var count: Int32 = 0
        return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? UInt64(max(count, 0)) : nil
    }

    /// Bounds how long the kernel waits for an acknowledgement before it retransmits: at least 1 s.
    ///
    /// By default it doubles its wait up to 2 minutes, to protect a congested path. When many packets are lost, an
    /// acknowledgement that is late because of such a wait makes it take the path itself for that slow.
    ///
    /// Before Linux 6.15, which has no such bound, the kernel is told not to double the wait for the first six times
    /// while less than four packets are on their way. With BBR it does so nevertheless.
    static func boundRetransmission(_ socket: CInt, within time: Duration) {
        let milliseconds = Int32(clamping: time.clamped(atLeast: .seconds(1)).saturatedNanoseconds / 1_000_000)
        if set(socket, rtoMaxMilliseconds, min(milliseconds, 120_000)) { return }
        _ = set(socket, TCP_THIN_LINEAR_TIMEOUTS, 1)
    }

    /// `TCP_RTO_MAX_MS`, from 1,000 to 120,000 (linux/tcp.h).
    static let rtoMaxMilliseconds: Int32 = 44

    private static func set(_ socket: CInt, _ option: Int32, _ value: Int32) -> Bool {
        var value = value
        return setsockopt(socket, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }
}
