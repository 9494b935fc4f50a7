package import LifelineCore
internal import NIOCore
internal import NIOPosix

/// Collects the frames that a receiver writes while it receives those of one read. They become the connection's outgoing
/// buffer when all were received. Belongs to the connection's loop.
package final class ReplyBuffer {
    private var bytes = ByteBuffer()
    private var frameCount = 0
    private let maximumFrameLength: Int
    /// Whether what is written is sent.
    var isOpen = true

    /// - Parameter maximumFrameLength: the most bytes that a payload may have, prefix excluded.
    package init(maximumFrameLength: Int) {
        self.maximumFrameLength = maximumFrameLength
    }

    /// Calls `body` with a writer of frames. When it throws, what it has written is dropped.
    ///
    /// - Parameter byteCount: how many bytes it probably writes: more of them cost a copy.
    package func write(
        expecting byteCount: Int,
        _ body: (inout FrameWriter) throws -> Void
    ) rethrows {
        let room = byteCount + Varint.maximumLength
        if bytes.readableBytes == 0 { bytes = SpareBuffer.current.take(minimumCapacity: room) }
        var overflow: [UInt8] = []
        try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: room) { memory in
            var writer = FrameWriter(memory, maximumFrameLength: maximumFrameLength, isOpen: isOpen)
            try body(&writer)
            frameCount += writer.count
            overflow = writer.takeOverflow()
            return writer.byteCount
        }
        if !overflow.isEmpty { bytes.writeBytes(overflow) }
    }

    /// Has `body` take what was written, if anything was.
    func take<Result>(_ body: (inout ByteBuffer, _ frameCount: Int) -> Result) -> Result? {
        defer {
            SpareBuffer.current.giveBack(&bytes)
            frameCount = 0
        }
        return bytes.readableBytes > 0 ? body(&bytes, frameCount) : nil
    }
}

/// One buffer for all connections of a thread, which take turns at writing into it: none of them holds one while it is
/// idle, and busy ones need no fresh memory for each write.
final class SpareBuffer {
    /// The largest buffer that is kept: some of the largest reads' answers. Allocating larger ones is little beside filling
    /// them.
    static let maximumCapacity = 1 << 20

    // Unsafe only to the compiler: each thread sees its own value and no other.
    private nonisolated(unsafe) static let ofThread = ThreadSpecificVariable<SpareBuffer>()

    /// The one of this thread.
    static var current: SpareBuffer {
        if let spare = ofThread.currentValue { return spare }
        let spare = SpareBuffer()
        ofThread.currentValue = spare
        return spare
    }

    private var buffer = ByteBuffer()

    /// An empty buffer with at least so much room.
    func take(minimumCapacity: Int) -> ByteBuffer {
        var taken = ByteBuffer()
        swap(&taken, &buffer)
        // One that somebody still reads is left to him.
        taken.clear(minimumCapacity: minimumCapacity)
        return taken
    }

    /// Takes a buffer that is not needed any more, and leaves none.
    func giveBack(_ returned: inout ByteBuffer) {
        if returned.capacity > buffer.capacity, returned.capacity <= SpareBuffer.maximumCapacity {
            swap(&returned, &buffer)
        }
        returned = ByteBuffer()
    }
}
