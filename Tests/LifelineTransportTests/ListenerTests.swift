import LifelineCore
import LifelineTestSupport
import Logging
import Testing

@testable import LifelineTransport

@Suite(.timeLimit(.minutes(1))) struct ListenerTests {
    /// A listener, and a peer whose connection it has accepted but not handed out.
    private func withWaitingConnection(
        _ body: (any TransportListener<Void>, _ peer: RawSocket) async throws -> Void
    ) async throws {
        let listener = try await listenAnswering(on: .shared)
        let peer = try await RawSocket.connect(toPort: listener.boundEndpoint.port ?? 0)
        try await peer.write([0x00])
        #expect(try await peer.read(1) == [0x00])
        try await body(listener, peer)
    }

    @Test func acceptedConnectionsAreHandedOutAfterAcceptingHasStopped() async throws {
        try await withWaitingConnection { listener, peer in
            await listener.stopAccepting()
            let opened = try #require(try await listener.nextConnection())
            let next = try await listener.nextConnection()
            #expect(next?.connection == nil)
            opened.connection.close()
            #expect(try await peer.read().isEmpty, "a regular end")
        }
    }

    @Test func closingAbortsWhatNobodyHasTaken() async throws {
        try await withWaitingConnection { listener, peer in
            await listener.close()
            let next = try await listener.nextConnection()
            #expect(next?.connection == nil)
            await #expect(throws: RawSocket.Failure.self) { try await peer.read() }
        }
    }
}

/// Listens on any port, and answers all input with an empty frame.
func listenAnswering(on transport: NIOTransport) async throws -> any TransportListener<Void> {
    let options = ConnectionOptions(
        maximumFrameLength: 100,
        connectTimeout: .seconds(1),
        closeTimeout: .seconds(1),
        outboundMarks: WaterMarks(low: 1, high: 2),
        metrics: TransportMetrics(role: "test")
    )
    return try await transport.listen(
        on: .tcp(host: "127.0.0.1", port: 0),
        options: ListenerOptions(
            connection: options,
            maximumConnections: 10,
            backlog: 10,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    ) { Answerer() }
}

/// Answers all input with an empty frame.
private struct Answerer: FrameReceiver, FrameSink {
    var inbox: Void { () }
    var answersPings: Bool { true }
    mutating func receive(frame _: UnsafeRawBufferPointer) {}
    mutating func finishBatch() -> ReadDemand { .more }
    mutating func takeReplies() -> [UInt8] { [0x00] }
    func pingFrame(number _: UInt64) -> [UInt8]? { nil }
    mutating func finish(throwing _: ConnectionError?) {}
}
