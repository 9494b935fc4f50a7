internal import NIOCore
internal import NIOPosix

/// One buffer for all connections of a thread, which take turns at using it: none of them holds one while it is idle,
/// and busy ones need no fresh memory for each read and write.
final class SpareBuffer {
    /// The largest buffer that is kept: some of the largest reads. Allocating a larger one is little beside filling it.
    static let maximumCapacity = 1 << 20

    // Unsafe only to the compiler: each thread sees its own value and no other.
    private nonisolated(unsafe) static let ofThread = ThreadSpecificVariable<Buffers>()

    private final class Buffers {
        let reading = SpareBuffer()
        let readingLong = SpareBuffer()
        let writing = SpareBuffer()
    }

    private static var current: Buffers {
        if let buffers = ofThread.currentValue { return buffers }
        let buffers = Buffers()
        ofThread.currentValue = buffers
        return buffers
    }

    /// This thread's buffer for what is read, so many bytes at most.
    static func forReading(_ byteCount: Int) -> SpareBuffer {
        byteCount > ReadLength.normal ? current.readingLong : current.reading
    }

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

/// How many bytes a connection reads at once, at most. Belongs to the connection's loop.
///
/// Frames of about the normal length straddle nearly every read, and are copied for it, unless reads are longer. Where
/// a normal one was filled, there is more: with the next one long, echoes of 512 bytes took 0.65 of the time (1,024 in
/// flight).
enum ReadLength {
    static let normal = 64 << 10
    /// As in the loop in C that it is measured beside. With 128 KiB, copying out of the kernel took 42 % of a server's
    /// time (echoes of 512 bytes, 1,024 in flight), and an echo 434 to 589 ns of it, in place of 267 to 317.
    static let long = 256 << 10
    /// From this length on of a frame, reads are long.
    static let longFrame = 32 << 10

    /// How much to read next.
    ///
    /// - Parameter pendingLength: how long the frame is that has begun.
    static func next(after byteCount: Int, pendingLength: Int) -> Int {
        pendingLength >= longFrame || byteCount >= normal ? long : normal
    }
}

/// Has all connections of an event loop read into one buffer, which the connection's handler gives back after each
/// read.
///
/// A buffer of its own, which grows with what is read and stays, would cost each connection up to the largest read.
struct SharedReceiveAllocator: RecvByteBufferAllocator {
    /// The first read's buffer, which the channel keeps. Most first messages fit.
    private static let firstReadLength = 512

    private let readLength: NIOLoopBoundBox<Int>
    private var hasRead = false

    /// - Parameter readLength: how much to read.
    init(readLength: NIOLoopBoundBox<Int>) {
        self.readLength = readLength
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        guard hasRead else { return allocator.buffer(capacity: SharedReceiveAllocator.firstReadLength) }
        let length = readLength.value
        return SpareBuffer.forReading(length).take(minimumCapacity: length)
    }

    /// Always asks for a new buffer: the channel would use its own again.
    mutating func record(actualReadBytes: Int) -> Bool {
        hasRead = true
        return true
    }
}
