import LifelineCore
import LifelineTestSupport
import Testing

@testable import LifelineTransport

/// The number of frames that the peer's TCP has not acknowledged at the end of a connection, on real sockets.
@Suite(.timeLimit(.minutes(1))) struct DeliveryTests {
    /// A length of 10,000, and that many bytes.
    private static let frame: [UInt8] = [0x90, 0x4E] + [UInt8](repeating: 7, count: 10_000)

    /// Ends when a connection has seen the peer's end.
    private let inputEnd = AsyncStream.makeStream(of: Never.self)

    private func connect(
        tracking: Bool = true,
        closeTimeout: Duration = .seconds(50)
    ) async throws -> (any TransportConnection, peer: RawSocket) {
        let listener = try await RawSocket.listen()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        var options = ConnectionOptions.testing(tracking)
        options.closeTimeout = closeTimeout
        let opened = try await NIOTransport.shared.connect(to: endpoint, options: options) { [inputEnd] in
            NoReceiver(inputEnd: inputEnd.continuation)
        }
        return (opened.connection, try await listener.accept())
    }

    /// More than the kernel accepts for a peer that does not read; the rest is in the outgoing queue.
    private static let overflowingCount = 2_000

    private func send(_ count: Int, on connection: any TransportConnection) async throws {
        for _ in 0..<count {
            let pending = try Self.frame.withUnsafeBytes { try connection.offer($0) }
            if let pending { try await connection.wait(for: pending) }
        }
    }

    /// Waits until the peer accepts no more, and has acknowledged everything that arrived.
    private func waitUntilPeerIsFull(_ connection: any TransportConnection) async throws {
        let port = connection.localEndpoint.port ?? 0
        try await KernelSocket.wait { $0.localPort == port && $0.isStuck }
    }

    /// Waits until the kernel knows that the peer has everything.
    private func waitUntilAcknowledged(_ connection: any TransportConnection, by peer: RawSocket) async throws {
        try peer.acknowledgeNow()
        let port = connection.localEndpoint.port ?? 0
        try await KernelSocket.wait { $0.localPort == port && $0.isAcknowledged }
    }

    @Test func everythingArrivedBeforeTheCut() async throws {
        let (connection, peer) = try await connect()
        try await send(5, on: connection)
        #expect(try await peer.read(5 * Self.frame.count).count == 5 * Self.frame.count)
        try await waitUntilAcknowledged(connection, by: peer)
        connection.abort(.closedLocally)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == 0)
    }

    /// After the cut, the peer reads only bytes that had arrived before it.
    @Test func thePeerDoesNotRead() async throws {
        let (connection, peer) = try await connect()
        let acceptedCount = Self.overflowingCount
        try await send(acceptedCount, on: connection)
        try await waitUntilPeerIsFull(connection)
        connection.abort(.closedLocally)
        let report = await connection.waitUntilClosed()
        let arrivedCount = try peer.unreadByteCount / Self.frame.count
        #expect(arrivedCount > 0 && arrivedCount < acceptedCount)
        #expect(report.unacknowledgedFrameCount == acceptedCount - arrivedCount)
        #expect(report.acceptedFrameCount == acceptedCount)
        #expect(report.unwrittenByteCount > 0)
    }

    @Test func thePeerResets() async throws {
        let (connection, peer) = try await connect()
        let acceptedCount = Self.overflowingCount
        try await send(acceptedCount, on: connection)
        try await waitUntilPeerIsFull(connection)
        let arrivedCount = try peer.unreadByteCount / Self.frame.count
        try peer.reset()
        let report = await connection.waitUntilClosed()
        #expect(report.failure?.code == .closedByPeer)
        #expect(report.unacknowledgedFrameCount == acceptedCount - arrivedCount)
        #expect(report.acceptedFrameCount == acceptedCount)
    }

    @Test func aGracefulCloseLeavesNothing() async throws {
        let (connection, peer) = try await connect()
        try await send(3, on: connection)
        connection.close()
        #expect(try await peer.read().count == 3 * Self.frame.count)
        try peer.finish()
        let report = await connection.waitUntilClosed()
        #expect(report.failure == nil && report.unacknowledgedFrameCount == 0)
    }

    /// More small frames than the ledger keeps: it asks the kernel in between, and the final count is right.
    @Test func manySmallFrames() async throws {
        let (connection, peer) = try await connect()
        let count = 200_000
        async let received = peer.read(2 * count)
        let small: [UInt8] = [1, 7]
        for _ in 0..<count {
            let pending = try small.withUnsafeBytes { try connection.offer($0) }
            if let pending { try await connection.wait(for: pending) }
        }
        #expect(try await received.count == 2 * count)
        try await waitUntilAcknowledged(connection, by: peer)
        connection.abort(.closedLocally)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == 0)
    }

    // MARK: Both sides have ended

    /// More than a peer that does not read accepts, and less than the kernel accepts for it.
    private static let waitingCount = 50

    /// Both sides have ended, and the peer has not read.
    private func endBothSides(_ connection: any TransportConnection, _ peer: RawSocket) async throws {
        try await send(Self.waitingCount, on: connection)
        try peer.finish()
        // The loop could handle this end before that of the peer.
        for await _ in inputEnd.stream {}
        connection.close()
        let port = connection.localEndpoint.port ?? 0
        try await KernelSocket.wait { $0.localPort == port && $0.state == .lastAcknowledgement }
    }

    @Test func bytesThatArriveAfterBothEndsCount() async throws {
        let (connection, peer) = try await connect()
        try await endBothSides(connection, peer)
        #expect(try await peer.read().count == Self.waitingCount * Self.frame.count)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == 0)
    }

    @Test func aPeerThatHasEndedAndResets() async throws {
        let (connection, peer) = try await connect()
        try await endBothSides(connection, peer)
        try peer.reset()
        let report = await connection.waitUntilClosed()
        #expect(try #require(report.unacknowledgedFrameCount) > 0)
        #expect(report.failure == nil)
    }

    @Test func aPeerThatHasEndedAndDoesNotReadIsLeftAfterTheTimeout() async throws {
        let (connection, peer) = try await connect(closeTimeout: .milliseconds(20))
        try await endBothSides(connection, peer)
        #expect(try #require(await connection.waitUntilClosed().unacknowledgedFrameCount) > 0)
        withExtendedLifetime(peer) {}
    }

    @Test func abortingDoesNotWait() async throws {
        let (connection, peer) = try await connect()
        try await endBothSides(connection, peer)
        connection.abort(.closedLocally)
        #expect(try #require(await connection.waitUntilClosed().unacknowledgedFrameCount) > 0)
        #expect(try await peer.read().count == Self.waitingCount * Self.frame.count, "the kernel still delivers it")
    }

    // MARK: Unknown counts

    @Test func notTrackedIsNotKnown() async throws {
        let (connection, peer) = try await connect(tracking: false)
        try await send(1, on: connection)
        connection.abort(.closedLocally)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == nil)
        withExtendedLifetime(peer) {}
    }

    @Test func aUnixSocketAcknowledgesNothing() async throws {
        try await withTemporaryPath { path in
            let listener = try await RawSocket.listen(path: path)
            let opened = try await NIOTransport.shared.connect(to: .unix(path: path), options: .testing(true)) {
                NoReceiver()
            }
            try await send(1, on: opened.connection)
            opened.connection.abort(.closedLocally)
            #expect(await opened.connection.waitUntilClosed().unacknowledgedFrameCount == nil)
            withExtendedLifetime(listener) {}
        }
    }
}

extension ConnectionOptions {
    fileprivate static func testing(_ tracksDelivery: Bool) -> ConnectionOptions {
        ConnectionOptions(
            maximumFrameLength: 1 << 20,
            connectTimeout: .seconds(10),
            closeTimeout: .seconds(10),
            outboundMarks: WaterMarks(low: 64 << 10, high: 64 << 20),
            tracksDelivery: tracksDelivery,
            metrics: TransportMetrics(role: "test")
        )
    }
}

/// For peers that send nothing.
private struct NoReceiver: FrameReceiver, FrameSink {
    var inputEnd: AsyncStream<Never>.Continuation?
    var inbox: Void { () }
    var answersPings: Bool { false }
    mutating func receive(frame _: UnsafeRawBufferPointer) {}
    mutating func finishBatch() -> ReadDemand { .more }
    mutating func takeReplies() -> [UInt8] { [] }
    func pingFrame(number _: UInt64) -> [UInt8]? { nil }
    mutating func finish(throwing _: ConnectionError?) { inputEnd?.finish() }
}
