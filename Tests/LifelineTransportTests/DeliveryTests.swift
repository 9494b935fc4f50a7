import Foundation
import LifelineCore
import LifelineTestSupport
import Testing

@testable import LifelineTransport

/// How many frames the peer's TCP has not acknowledged when a connection ends, told by real sockets.
@Suite(.timeLimit(.minutes(1))) struct DeliveryTests {
    /// A length of 10,000, and as many bytes.
    private static let frame: [UInt8] = [0x90, 0x4E] + [UInt8](repeating: 7, count: 10_000)

    private func connect(tracking: Bool = true) async throws -> (any TransportConnection, peer: RawSocket) {
        let listener = try await RawSocket.listen()
        let endpoint = Endpoint.tcp(host: "127.0.0.1", port: UInt16(listener.port))
        let opened = try await NIOTransport.shared.connect(to: endpoint, options: .testing(tracking)) { NoReceiver() }
        return (opened.connection, try await listener.accept())
    }

    /// More than the kernel takes for a peer that does not read; the outgoing queue takes the rest.
    private static let overflowingCount = 2_000

    private func send(_ count: Int, on connection: any TransportConnection) async throws {
        for _ in 0..<count {
            let pending = try Self.frame.withUnsafeBytes { try connection.offer($0) }
            if let pending { try await connection.wait(for: pending) }
        }
    }

    /// Waits until the peer takes no more and has acknowledged all that has come.
    private func waitUntilPeerIsFull(_ connection: any TransportConnection) async throws {
        let port = connection.localEndpoint.port ?? 0
        while try !KernelTimers.isStuck(localPort: port) { try Task.checkCancellation() }
    }

    @Test func everythingArrivedBeforeTheCut() async throws {
        let (connection, peer) = try await connect()
        try await send(5, on: connection)
        #expect(try await peer.read(5 * Self.frame.count).count == 5 * Self.frame.count)
        try peer.acknowledgeNow()
        connection.abort(.closedLocally)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == 0)
    }

    /// What the peer reads after the cut is what had come before it.
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

    /// More small frames than the ledger wants to keep: it asks in between, and the count at the end is right.
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
        try peer.acknowledgeNow()
        connection.abort(.closedLocally)
        #expect(await connection.waitUntilClosed().unacknowledgedFrameCount == 0)
    }

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
private struct NoReceiver: FrameReceiver {
    var inbox: Void { () }
    mutating func receive(frame _: UnsafeRawBufferPointer) {}
    mutating func finishBatch() -> ReadDemand { .more }
    mutating func takeReplies() -> [UInt8] { [] }
    func pingFrame(number _: UInt64) -> [UInt8]? { nil }
    mutating func finish(throwing _: ConnectionError?) {}
}

/// What the kernel waits for on connections, as it says in /proc/net/tcp.
private enum KernelTimers {
    /// Whether a connection waits for room at the peer: it probes for some, which it does only when nothing is on its way,
    /// or it retransmits, which it does later than the peer would have acknowledged what it took.
    static func isStuck(localPort port: Int) throws -> Bool {
        // By a handle: what reads a file whole goes by its size, which is 0 here.
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/tcp"))
        let table = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        let name = "0100007F:" + String(format: "%04X", port)
        // number, local address, remote address, state, queues, timer:when, retransmissions
        let rows = table.split(separator: "\n").map { $0.split(separator: " ") }
        return rows.contains { row in
            row.count > 6 && row[1] == name && (row[5].hasPrefix("04:") || UInt64(row[6], radix: 16) ?? 0 > 0)
        }
    }
}
