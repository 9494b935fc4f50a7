/// Writes frames, one behind the other, into memory that becomes the connection's outgoing buffer.
///
/// It is handed to a `FrameHandler` for the time of a call. What is written is sent when all frames of the read were
/// handled.
public struct FrameWriter: ~Copyable {
    /// Where the next frame begins.
    @usableFromInline var position: UnsafeMutableRawPointer?
    /// How many bytes there is room for at `position`; none once a frame did not fit.
    @usableFromInline var room: Int
    /// The longest payload that is taken; below 0 when none is.
    @usableFromInline let limit: Int
    /// How many frames were written.
    @usableFromInline package var count = 0
    private let start: UnsafeMutableRawPointer?
    /// The frames from the first one on that did not fit into the memory.
    private var overflow: [UInt8] = []

    /// - Parameters:
    ///   - memory: where to write, as long as there is room.
    ///   - maximumFrameLength: the most bytes that a payload may have, prefix excluded.
    ///   - isOpen: whether anything may be sent still.
    package init(_ memory: UnsafeMutableRawBufferPointer, maximumFrameLength: Int, isOpen: Bool) {
        start = memory.baseAddress
        position = start
        room = memory.count
        limit = isOpen ? FrameDecoder.clamped(maximumFrameLength) : -1
    }

    /// Writes a frame with a copy of `payload`.
    ///
    /// - Throws: `ConnectionError` `messageRefused` when it is over the limit; `sendingFinished` when this side of the
    ///   connection has ended. Nothing was written then, and the connection goes on.
    @inlinable public mutating func write(_ payload: UnsafeRawBufferPointer) throws(ConnectionError) {
        // Five bytes: the longest prefix.
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

    /// How many bytes of the memory were written.
    package var byteCount: Int {
        guard let start, let position else { return 0 }
        return position - start
    }

    /// Writes a frame that has its prefix already.
    ///
    /// - Throws: as `write(_:)`.
    package mutating func write(frame: UnsafeRawBufferPointer, payloadLength: Int) throws(ConnectionError) {
        try check(payloadLength)
        append(frame)
        count += 1
    }

    /// The frames that did not fit into the memory; they follow those that did.
    package mutating func takeOverflow() -> [UInt8] {
        defer { overflow = [] }
        return overflow
    }

    /// A payload that does not fit, or is not taken.
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

    /// What follows goes into the overflow, unless so many bytes fit.
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
