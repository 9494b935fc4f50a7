import Glibc
import LifelineTestSupport
import Testing

@testable import LifelineTransport

@Suite struct TCPSocketTests {
    @Test func otherSocketsAreLeftAlone() throws {
        let socket = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(socket >= 0)
        defer { close(socket) }
        #expect(TCPSocket.information(on: socket) == nil)
        TCPSocket.boundRetransmission(socket, within: .seconds(3))
        #expect(TCPSocket.information(on: -1) == nil)
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
