import LifelineCore
import LifelineTestSupport
import NIOEmbedded
import Testing

@testable import LifelineTransport

/// Attempts that are given up leave nothing in the kernel.
@Suite(.timeLimit(.minutes(1))) struct ConnectAttemptTests {
    /// A listener that accepts no more connections, so that attempts hang.
    private func withFullListener(_ body: (RawSocket) async throws -> Void) async throws {
        let listener = try await RawSocket.listen(backlog: 0)
        let first = try await RawSocket.connect(toPort: listener.port)
        try await body(listener)
        withExtendedLifetime(first) {}
    }

    private func connect(to listener: RawSocket, timeout: Duration) async throws {
        let options = ConnectionOptions(
            maximumFrameLength: 100,
            connectTimeout: timeout,
            closeTimeout: .seconds(1),
            outboundMarks: WaterMarks(low: 1, high: 2),
            metrics: TransportMetrics(role: "test")
        )
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        _ = try await NIOTransport.shared.connect(to: endpoint, options: options) {
            RecordingReceiver(inbox: Record())
        }
    }

    private func isConnecting(_ socket: KernelSocket, to listener: RawSocket) -> Bool {
        socket.remotePort == listener.port && socket.state == .connecting
    }

    @Test func cancelled() async throws {
        try await withFullListener { listener in
            let task = Task { try await connect(to: listener, timeout: .seconds(3_600)) }
            try await KernelSocket.wait { isConnecting($0, to: listener) }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let isLeft = try KernelSocket.all.contains { isConnecting($0, to: listener) && $0.isHeld() }
            #expect(!isLeft)
        }
    }

    @Test func timedOut() async throws {
        try await withFullListener { listener in
            let error = await #expect(throws: ConnectionError.self) {
                try await connect(to: listener, timeout: .milliseconds(50))
            }
            #expect(error?.code == .connectTimeout)
            let isLeft = try KernelSocket.all.contains { isConnecting($0, to: listener) && $0.isHeld() }
            #expect(!isLeft)
        }
    }

    @Test func noFurtherAddressIsTried() async throws {
        let attempt = ConnectAttempt()
        await attempt.giveUp()
        #expect(throws: CancellationError.self) { try attempt.begin(EmbeddedChannel()) }
    }
}
