package import LifelineCore
internal import NIOCore

/// Collects the frames that a receiver writes while it receives those of one read. They become the connection's
/// outgoing buffer when all were received. Used only on the connection's loop.
package final class ReplyBuffer {
    private var bytes = ByteBuffer()
    private var frameCount = 0
    private let maximumFrameLength: Int
    private lazy var spare = SpareBuffer.forWriting
    /// Whether written frames are sent.
    package internal(set) var isOpen = true

    /// - Parameter maximumFrameLength: the most bytes that a payload may have, prefix excluded.
    package init(maximumFrameLength: Int) {
        self.maximumFrameLength = maximumFrameLength
    }

    /// Calls `body` with a writer of frames. When it throws, its frames are dropped.
    ///
    /// - Parameter byteCount: the expected number of bytes: more bytes cost a copy. A large expectation may be reduced.
    package func write(
        expecting byteCount: Int,
        _ body: (inout FrameWriter) throws -> Void
    ) rethrows {
        let room = min(byteCount, ReadLength.long) + Varint.maximumLength
        if bytes.readableBytes == 0, bytes.capacity < room {
            spare.giveBack(bytes)
            bytes = spare.take(minimumCapacity: room)
        }
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

    /// Calls `body` with the written frames, if there are any.
    func take<Result>(_ body: (inout ByteBuffer, _ frameCount: Int) -> Result) -> Result? {
        defer {
            spare.giveBack(bytes)
            bytes = ByteBuffer()
            frameCount = 0
        }
        return bytes.readableBytes > 0 ? body(&bytes, frameCount) : nil
    }
}
