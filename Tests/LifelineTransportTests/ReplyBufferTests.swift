import LifelineCore
import NIOCore
import Testing

@testable import LifelineTransport

@Suite struct ReplyBufferTests {
    private func write(_ payloads: [[UInt8]], to replies: ReplyBuffer, expecting byteCount: Int = 0) throws {
        try replies.write(expecting: byteCount) { writer in
            for payload in payloads { try payload.withUnsafeBytes { try writer.write($0) } }
        }
    }

    private func taken(from replies: ReplyBuffer) -> (bytes: [UInt8], frameCount: Int)? {
        replies.take { bytes, frameCount in (Array(bytes.readableBytesView), frameCount) }
    }

    @Test func bytesOfSeveralCallsAreTakenTogetherAndOnce() throws {
        let replies = ReplyBuffer(maximumFrameLength: 100_000)
        #expect(taken(from: replies) == nil)
        try write([[1], []], to: replies)
        // Far more than expected; the size is not known beforehand.
        let long = [UInt8](repeating: 7, count: 70_000)
        try write([long, [2]], to: replies)
        let all = try #require(taken(from: replies))
        #expect(all.bytes == [1, 1, 0, 0xF0, 0xA2, 0x04] + long + [1, 2])
        #expect(all.frameCount == 4)
        #expect(taken(from: replies) == nil)
    }

    @Test func ofACallThatThrowsNothingRemains() throws {
        struct Trouble: Error {}
        let replies = ReplyBuffer(maximumFrameLength: 10)
        try write([[1]], to: replies)
        #expect(throws: Trouble.self) {
            try replies.write(expecting: 10) { writer in
                try writer.write(UnsafeRawBufferPointer(start: nil, count: 0))
                throw Trouble()
            }
        }
        let all = try #require(taken(from: replies))
        #expect(all.bytes == [1, 1])
        #expect(all.frameCount == 1)
    }

    // MARK: The queue's side

    private let queue = OutboundQueue(marks: WaterMarks(low: 10, high: 20))

    private func written() -> (bytes: [UInt8], frameCount: Int)? {
        guard case .write(let bytes, let frameCount, _) = queue.takeForFlush() else { return nil }
        return (Array(bytes.readableBytesView), frameCount)
    }

    @Test func repliesGoOutBehindWhatWasSentBefore() throws {
        var replies = ByteBuffer(bytes: [1, 2, 0])
        #expect(queue.append(&replies, frameCount: 2) == true)
        #expect(replies.readableBytes == 0)
        let sent = try ([1, 3] as [UInt8]).withUnsafeBytes {
            try queue.offerNow($0, UnsafeRawBufferPointer(start: nil, count: 0))
        }
        #expect(sent == false, "the replies' flush takes it along")
        replies = ByteBuffer(bytes: [1, 4])
        #expect(queue.append(&replies, frameCount: 1) == false)
        let all = try #require(written())
        #expect(all.bytes == [1, 2, 0, 1, 3, 1, 4])
        #expect(all.frameCount == 4)
        #expect(queue.acceptedFrameCount == 1, "of senders")
    }

    @Test func repliesAreRefusedWhenTheConnectionIsGone() {
        _ = queue.close(ConnectionError(code: .closedByPeer, message: ""))
        var replies = ByteBuffer(bytes: [0])
        #expect(queue.append(&replies, frameCount: 1) == nil)
        #expect(queue.acceptedFrameCount == 0)
    }

    // MARK: The loop's buffer

    @Test func aBufferIsUsedAgainUnlessSomebodyReadsItOrItIsLarge() {
        let spare = SpareBuffer()
        var first = spare.take(minimumCapacity: 1000)
        first.writeBytes([1, 2, 3])
        let address = first.withUnsafeReadableBytes { $0.baseAddress }
        spare.giveBack(first)
        first = ByteBuffer()
        var second = spare.take(minimumCapacity: 10)
        #expect(second.readableBytes == 0)
        #expect(second.withVeryUnsafeBytes { $0.baseAddress } == address)

        second.writeBytes([4])
        let reader = second
        spare.giveBack(second)
        second = ByteBuffer()
        var third = spare.take(minimumCapacity: 10)
        third.writeBytes([5])
        #expect(reader.readableBytesView.elementsEqual([4]))

        var large = ByteBuffer()
        large.reserveCapacity(SpareBuffer.maximumCapacity + 1)
        spare.giveBack(large)
        large = ByteBuffer()
        #expect(spare.take(minimumCapacity: 1).capacity < SpareBuffer.maximumCapacity)
    }
}
