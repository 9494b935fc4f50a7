import Glibc
import LifelineTestSupport
import Testing

@testable import LifelineTransport

@Suite(.timeLimit(.minutes(1))) struct TCPSocketTests {
    @Test func otherSocketsAreLeftAlone() throws {
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        #expect(TCPSocket.information(on: socket) == nil)
        TCPSocket.boundRetransmission(socket, within: .seconds(3))
        #expect(TCPSocket.information(on: -1) == nil)
        #expect(TCPSocket.unacknowledgedByteCount(on: -1) == nil)
    }

    /// Sends to a peer that does not read, until the kernels hold no more.
    @Test func unacknowledgedBytesEndWithTheLastWrite() async throws {
        let listener = try await RawSocket.listen()
        let own = try await RawSocket.connect(toPort: listener.port)
        let peer = try await listener.accept()
        let socket = own.descriptor
        #expect(fcntl(socket, F_SETFL, O_NONBLOCK) == 0)
        let bytes = [UInt8](repeating: 0, count: 100_000)
        var written = 0
        while case let count = write(socket, bytes, bytes.count), count > 0 { written += count }
        // Bytes that are acknowledged between two reads of the values are in neither, so it repeats until the values
        // are stable. This side's SYN counts.
        while sum(of: socket) != UInt64(written) + 1 { await Task.yield() }
        #expect(TCPSocket.unacknowledgedByteCount(on: socket) ?? 0 > 0)
        _ = try await peer.read(written)
        while TCPSocket.unacknowledgedByteCount(on: socket) != 0 { await Task.yield() }
        #expect(TCPSocket.information(on: socket)?.acknowledgedByteCount == UInt64(written) + 1)
    }

    private func sum(of socket: CInt) -> UInt64? {
        guard let acknowledged = TCPSocket.information(on: socket)?.acknowledgedByteCount else { return nil }
        return TCPSocket.unacknowledgedByteCount(on: socket).map { acknowledged + $0 }
    }

    @Test(
        arguments: [
            (.seconds(-1), 1000), (.milliseconds(999), 1000), (.milliseconds(2500), 2500), (.seconds(1000), 120_000),
        ]
            as [(Duration, Int32)]
    )
    func retransmissionIsBoundAsTheKernelCan(time: Duration, milliseconds: Int32) throws {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        TCPSocket.boundRetransmission(socket, within: time)
        if let bound = value(of: TCPSocket.rtoMaxMilliseconds, socket) {
            #expect(bound == milliseconds)
        } else {
            #expect(value(of: TCP_THIN_LINEAR_TIMEOUTS, socket) == 1)
        }
    }

    private func value(of option: Int32, _ socket: CInt) -> Int32? {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(socket, Int32(IPPROTO_TCP), option, &value, &length) == 0 ? value : nil
    }
}
