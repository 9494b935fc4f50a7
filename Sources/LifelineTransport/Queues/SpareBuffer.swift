internal import NIOCore
internal import NIOPosix

/// One buffer for all connections of a thread, which take turns at using it. So idle connections hold no buffer, and
/// busy ones need no new memory for each read and write.
final class SpareBuffer {
    /// The largest buffer that is kept: some of the largest reads. The cost of allocating a larger one is small
    /// compared to filling it.
    static let maximumCapacity = 1 << 20

    // Unsafe only for the compiler: each thread sees only its own value.
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

    /// Returns this thread's buffer for reading at most this many bytes.
    static func forReading(_ byteCount: Int) -> SpareBuffer {
        byteCount > ReadLength.normal ? current.readingLong : current.reading
    }

    /// This thread's buffer for writing.
    static var forWriting: SpareBuffer { current.writing }

    private var buffer = ByteBuffer()

    /// Returns an empty buffer with at least this much room.
    func take(minimumCapacity: Int) -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&taken, &buffer)
        // A buffer that is still being read is not reused.
        taken.clear(minimumCapacity: minimumCapacity)
        return taken
    }

    /// Takes back a buffer that is no longer needed.
    func giveBack(_ returned: ByteBuffer) {
        if returned.capacity > buffer.capacity, returned.capacity <= SpareBuffer.maximumCapacity { buffer = returned }
    }
}

/// The most bytes that a connection reads at once. Used only on the connection's loop.
///
/// Frames of about the normal read length straddle nearly every read, which costs a copy, unless reads are longer. When
/// a normal read was filled, more bytes wait: if the next read is long, echoes of 512 bytes took 0.65 of the time
/// (1,024 in flight).
enum ReadLength {
    static let normal = 64 << 10
    /// The size in the C loop that Lifeline is compared with. With 128 KiB, copying from the kernel took 42 % of a
    /// server's time (echoes of 512 bytes, 1,024 in flight), and an echo took 434 to 589 ns of it instead of 267 to
    /// 317.
    static let long = 256 << 10
    /// The length of a frame from which on reads are long.
    static let longFrame = 32 << 10

    /// Returns the number of bytes to read next.
    ///
    /// - Parameter pendingLength: the length of the frame that has begun.
    static func next(after byteCount: Int, pendingLength: Int) -> Int {
        pendingLength >= longFrame || byteCount >= normal ? long : normal
    }
}

/// Makes all connections of an event loop read into one buffer, which the connection's handler gives back after each
/// read.
///
/// A separate buffer, which grows with reads and stays, would cost each connection up to the largest read.
struct SharedReceiveAllocator: RecvByteBufferAllocator {
    /// The first read's buffer, which the channel keeps. Most first messages fit.
    private static let firstReadLength = 512

    private let readLength: NIOLoopBoundBox<Int>
    private var hasRead = false

    /// - Parameter readLength: the number of bytes to read.
    init(readLength: NIOLoopBoundBox<Int>) {
        self.readLength = readLength
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        guard hasRead else { return allocator.buffer(capacity: SharedReceiveAllocator.firstReadLength) }
        let length = readLength.value
        return SpareBuffer.forReading(length).take(minimumCapacity: length)
    }

    /// Always asks for a new buffer, because the channel would otherwise use its own again.
    mutating func record(actualReadBytes: Int) -> Bool {
        hasRead = true
        return true
    }
}
