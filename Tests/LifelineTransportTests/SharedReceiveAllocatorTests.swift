import NIOCore
import NIOEmbedded
import Testing

@testable import LifelineTransport

@Suite struct SharedReceiveAllocatorTests {
    @Test func readsAreShortThenOfTheLengthThatIsWanted() {
        let length = NIOLoopBoundBox(ReadLength.normal, eventLoop: EmbeddedEventLoop())
        var allocator = SharedReceiveAllocator(readLength: length)
        #expect(allocator.buffer(allocator: ByteBufferAllocator()).capacity <= 512, "the channel keeps this one")
        let asksForAnother = allocator.record(actualReadBytes: 1)
        #expect(asksForAnother, "or that one would be used again")
        #expect(allocator.buffer(allocator: ByteBufferAllocator()).capacity == ReadLength.normal)
        length.value = ReadLength.long
        #expect(allocator.buffer(allocator: ByteBufferAllocator()).capacity == ReadLength.long)
    }

    @Test func readsAreLongWhereThereIsMoreOrAFrameIsLong() {
        #expect(ReadLength.next(after: ReadLength.normal, pendingLength: 0) == ReadLength.long)
        #expect(ReadLength.next(after: ReadLength.long, pendingLength: 0) == ReadLength.long)
        #expect(ReadLength.next(after: ReadLength.normal - 1, pendingLength: 0) == ReadLength.normal)
        #expect(ReadLength.next(after: 1, pendingLength: ReadLength.longFrame) == ReadLength.long)
        #expect(ReadLength.next(after: 1, pendingLength: ReadLength.longFrame - 1) == ReadLength.normal)
    }

    /// Long reads of one connection do not enlarge those of another.
    @Test func longBuffersAreKeptApart() {
        var normal = ByteBufferAllocator().buffer(capacity: ReadLength.normal)
        var long = ByteBufferAllocator().buffer(capacity: ReadLength.long)
        SpareBuffer.forReading(long.capacity).giveBack(long)
        SpareBuffer.forReading(normal.capacity).giveBack(normal)
        // Nothing refers to them, so they can be used again.
        (normal, long) = (ByteBuffer(), ByteBuffer())
        let taken = SpareBuffer.forReading(ReadLength.normal).take(minimumCapacity: ReadLength.normal)
        #expect(taken.capacity == ReadLength.normal)
    }
}
