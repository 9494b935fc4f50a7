/// Writes frames one after the other into memory that becomes the connection's outgoing buffer.
///
/// A `FrameHandler` gets it for the duration of a call. The written frames are sent when all frames of the read were
/// handled.
public struct FrameWriter: ~Copyable {
    /// The start of the next frame.
    @usableFromInline var position: UnsafeMutableRawPointer?
    /// The number of free bytes at `position`; 0 once a frame did not fit.
    @usableFromInline var room: Int
    /// The longest accepted payload; below 0 when none is accepted.
    @usableFromInline let limit: Int
    /// The number of frames written.
    @usableFromInline package var count = 0
    private let start: UnsafeMutableRawPointer?
    /// The frames that did not fit into the memory, and all after them.
    private var overflow: [UInt8] = []

    /// - Parameters:
    ///   - memory: the memory to write to, as long as there is room.
    ///   - maximumFrameLength: the most bytes that a payload may have, prefix excluded.
    ///   - isOpen: whether more may be sent.
    package init(_ memory: UnsafeMutableRawBufferPointer, maximumFrameLength: Int, isOpen: Bool) {
        start = memory.baseAddress
        position = start
        room = memory.count
        limit = isOpen ? FrameDecoder.clamped(maximumFrameLength) : -1
    }

    /// Writes a frame with a copy of `payload`.
    ///
    /// - Throws: `ConnectionError` `messageRefused` when it is over the limit; `sendingFinished` when this side of the
    ///   connection has ended. In both cases nothing was written, and the connection goes on.
    @inlinable public mutating func write(_ payload: UnsafeRawBufferPointer) throws(ConnectionError) {
        // The longest prefix has five bytes.
        guard let start = position, payload.count <= limit, payload.count <= room &- 5 else {
            return try writeToSpill(payload)
        }
        var end = start + Varint.encode(UInt64(payload.count), to: start)
        if let source = payload.baseAddress {
            end.copyMemory(from: source, byteCount: payload.count)
            end += payload.count
        }
        room &-= end - start
        position = end
        count &+= 1
    }

    /// The number of bytes written to the memory.
    package var byteCount: Int {
        guard let start, let position else { return 0 }
        return position - start
    }

    /// Writes a frame that already has its prefix.
    ///
    /// - Throws: as `write(_:)`.
    package mutating func write(frame: UnsafeRawBufferPointer, payloadLength: Int) throws(ConnectionError) {
        try check(payloadLength)
        append(frame)
        count += 1
    }

    /// Removes and returns the frames that did not fit into the memory. They follow those that did.
    package mutating func takeOverflow() -> [UInt8] {
        defer { overflow = [] }
        return overflow
    }

    /// Handles a payload that does not fit, or is not accepted.
    @usableFromInline mutating func writeToSpill(_ payload: UnsafeRawBufferPointer) throws(ConnectionError) {
        try check(payload.count)
        withUnsafeTemporaryAllocation(byteCount: Varint.maximumLength, alignment: 1) { prefix in
            let length = Varint.encode(UInt64(payload.count), into: prefix)
            spill(by: length + payload.count)
            append(UnsafeRawBufferPointer(rebasing: prefix[..<length]))
            append(payload)
        }
        count += 1
    }

    private func check(_ length: Int) throws(ConnectionError) {
        if limit < 0 { throw .sendingFinished }
        guard length > limit else { return }
        throw ConnectionError(
            code: .messageRefused,
            message: "A frame was not written; the connection goes on.",
            cause: FramingError.payloadTooLarge(length: length, limit: limit)
        )
    }

    /// Sends the following frames to the overflow, unless this many bytes fit.
    private mutating func spill(by byteCount: Int) {
        if byteCount > room { room = 0 }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        spill(by: bytes.count)
        guard let position, room > 0 else { return overflow.append(contentsOf: bytes) }
        UnsafeMutableRawBufferPointer(start: position, count: bytes.count).copyMemory(from: bytes)
        self.position = position + bytes.count
        room -= bytes.count
    }
}

extension ConnectionError {
    package static var sendingFinished: ConnectionError {
        ConnectionError(
            code: .sendingFinished,
            message:
                "This side has finished sending. Send before finishSending(), and before the connection's closure ends."
        )
    }
}
