internal import NIOCore
internal import NIOPosix

/// One buffer for all connections of a thread, which take turns at using it: none of them holds one while it is idle, and
/// busy ones need no fresh memory for each read and write.
final class SpareBuffer {
    /// The largest buffer that is kept: some of the largest reads. Allocating a larger one is little beside filling it.
    static let maximumCapacity = 1 << 20

    // Unsafe only to the compiler: each thread sees its own value and no other.
    private nonisolated(unsafe) static let ofThread = ThreadSpecificVariable<Pair>()

    private final class Pair {
        let reading = SpareBuffer()
        let writing = SpareBuffer()
    }

    private static var current: Pair {
        if let pair = ofThread.currentValue { return pair }
        let pair = Pair()
        ofThread.currentValue = pair
        return pair
    }

    /// This thread's buffer for what is read.
    static var forReading: SpareBuffer { current.reading }

    /// This thread's buffer for what is written.
    static var forWriting: SpareBuffer { current.writing }

    private var buffer = ByteBuffer()

    /// An empty buffer with at least so much room.
    func take(minimumCapacity: Int) -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&taken, &buffer)
        // One that somebody still reads is left to him.
        taken.clear(minimumCapacity: minimumCapacity)
        return taken
    }

    /// Takes a buffer that is not needed any more.
    func giveBack(_ returned: ByteBuffer) {
        if returned.capacity > buffer.capacity, returned.capacity <= SpareBuffer.maximumCapacity { buffer = returned }
    }
}

/// Has all connections of an event loop read into one buffer, which the connection's handler gives back after each read.
///
/// A buffer of its own, which grows with what is read and stays, would cost each connection up to the largest read.
struct SharedReceiveAllocator: RecvByteBufferAllocator {
    /// The largest read. On loopback, twice as much took the kernel nearly twice as long for each byte.
    static let maximumReadLength = 64 << 10

    /// The first read's buffer, which the channel keeps. Most first messages fit.
    private static let firstReadLength = 512

    private var hasRead = false

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        guard hasRead else { return allocator.buffer(capacity: SharedReceiveAllocator.firstReadLength) }
        return SpareBuffer.forReading.take(minimumCapacity: SharedReceiveAllocator.maximumReadLength)
    }

    /// Always asks for a new buffer: the channel would use its own again.
    mutating func record(actualReadBytes: Int) -> Bool {
        hasRead = true
        return true
    }
}
