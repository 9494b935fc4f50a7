import LifelineCore
import NIOCore
import Testing

@testable import LifelineTransport

@Suite struct OutboundQueueTests {
    /// Frames of 2, 3 and 1 bytes.
    private static let frames: [UInt8] = [1, 9, 2, 8, 8, 0]

    private func offer(_ queue: OutboundQueue) throws -> OutboundQueue.Offer {
        try Self.frames.withUnsafeBytes { try queue.offer($0, count: 3) }
    }

    private func written(_ queue: OutboundQueue) -> (bytes: [UInt8], frameCount: Int)? {
        guard case .write(let buffer, let frameCount, _) = queue.takeForFlush() else { return nil }
        return (Array(buffer.readableBytesView), frameCount)
    }

    @Test func framesThatAreOfferedTogetherCountEach() throws {
        let queue = OutboundQueue(marks: WaterMarks(low: 10, high: 20), tracksDelivery: true)
        #expect(try offer(queue) == .accepted(scheduleFlush: true))
        let write = try #require(written(queue))
        #expect(write.bytes == Self.frames)
        #expect(write.frameCount == 3)
        #expect(queue.acceptedFrameCount == 3)
        #expect(queue.acknowledge(byteCount: 1) == 3)
        #expect(queue.acknowledge(byteCount: 2) == 2)
        #expect(queue.acknowledge(byteCount: 5) == 1)
        #expect(queue.acknowledge(byteCount: 6) == 0)
    }

    @Test func framesThatWaitTogetherAreAcceptedTogether() async throws {
        let queue = OutboundQueue(marks: WaterMarks(low: 0, high: 5), tracksDelivery: true)
        _ = try offer(queue)
        guard case .pending(let pending) = try offer(queue) else {
            Issue.record("there is no room")
            return
        }
        #expect(queue.acceptedFrameCount == 3)
        _ = try #require(written(queue))
        #expect(queue.completeWrite())
        try await queue.wait(for: pending)
        #expect(queue.acceptedFrameCount == 6)
        let write = try #require(written(queue))
        #expect(write.bytes == Self.frames)
        #expect(write.frameCount == 3)
        #expect(queue.acknowledge(byteCount: 8) == 2)
    }

    @Test func framesThatTheirSenderWritesAreOfferedInTheSameWay() async throws {
        let queue = OutboundQueue(marks: WaterMarks(low: 0, high: 10))
        func offer(_ pieces: ArraySlice<UInt8>...) throws -> OutboundQueue.Offer {
            try queue.offer { bytes in
                for piece in pieces { piece.withUnsafeBytes { bytes.append($0) } }
                #expect(bytes.count == pieces.reduce(0) { $0 + $1.count } && bytes.isEmpty == pieces.isEmpty)
            }
        }
        #expect(try offer() == .accepted(scheduleFlush: false) && queue.unwrittenByteCount == 0)
        #expect(try offer(Self.frames[..<2], Self.frames[2...]) == .accepted(scheduleFlush: true))
        #expect(try offer(Self.frames[...]) == .accepted(scheduleFlush: false))
        guard case .pending(let pending) = try offer(Self.frames[..<2]) else {
            Issue.record("there is no room")
            return
        }
        #expect(written(queue)?.bytes == Self.frames + Self.frames)
        #expect(queue.completeWrite())
        try await queue.wait(for: pending)
        #expect(written(queue)?.bytes == Array(Self.frames[..<2]))
        _ = queue.close(.closedLocally)
        #expect(throws: ConnectionError.self) { try offer(Self.frames[...]) }
    }

    /// Closing does not change that this side ends after the waiting frames.
    @Test(arguments: [false, true]) func closingWritesWhatWaitedWhenThisSideWasEnded(wasEnded: Bool) throws {
        let queue = OutboundQueue(marks: WaterMarks(low: 0, high: 5))
        _ = try offer(queue)
        _ = try offer(queue)
        if wasEnded { _ = queue.finish() }
        _ = queue.finish(closing: .closedLocally)
        _ = try #require(written(queue))
        _ = queue.completeWrite()
        #expect((written(queue)?.bytes == Self.frames) == wasEnded)
    }

    @Test func framesThatWaitTogetherAreRefusedTogether() async throws {
        let queue = OutboundQueue(marks: WaterMarks(low: 0, high: 5))
        _ = try offer(queue)
        guard case .pending(let pending) = try offer(queue) else {
            Issue.record("there is no room")
            return
        }
        #expect(queue.close(.closedLocally) == Self.frames.count)
        await #expect(throws: ConnectionError.self) { try await queue.wait(for: pending) }
        #expect(queue.acceptedFrameCount == 3)
    }
}
