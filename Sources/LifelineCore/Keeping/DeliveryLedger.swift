/// Records which frames written to a connection the peer's TCP has acknowledged, so that the rest can be counted as
/// lost with it.
///
/// It keeps the length of each unacknowledged frame as a varint: a byte for a frame of up to 127 bytes, and never more
/// bytes than the frame itself. Memory depends on the bytes in flight, which kernel and queue bound.
package struct DeliveryLedger: Sendable {
    /// The size of the ledger's memory from which on it is worth asking the kernel for acknowledged bytes.
    package static let trimThreshold = 64 << 10

    /// A ring: its size is a power of two or zero.
    private var ring: [UInt8] = []
    private var head = 0
    private var used = 0
    /// The position in the byte stream at which the first frame in the ring starts.
    private var start: UInt64 = 0
    /// The position at which the last frame ends.
    private var end: UInt64 = 0
    /// Bytes before `end` that belong to no frame, and to none of the lengths in the ring yet.
    private var uncountedByteCount: UInt64 = 0
    /// The number of acknowledged bytes of the stream.
    private var acknowledged: UInt64 = 0
    /// The number of frames that the peer's TCP has not fully acknowledged.
    package private(set) var unacknowledgedFrameCount = 0

    package init() {}

    /// Bytes that were accepted and are not acknowledged.
    package var unacknowledgedByteCount: UInt64 { end - acknowledged }

    /// Whether to report `bytesAcknowledged` now, because the ledger's memory has grown.
    package var needsTrim: Bool { used > DeliveryLedger.trimThreshold }

    /// Notes an accepted frame with its length, prefix included. 0, which no frame has, is ignored.
    package mutating func frameAccepted(byteCount: Int) {
        guard byteCount > 0 else { return }
        end += UInt64(byteCount)
        unacknowledgedFrameCount += 1
        var rest = UInt64(byteCount) + uncountedByteCount
        uncountedByteCount = 0
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest &>>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    /// Notes the number of bytes that the peer's TCP has acknowledged since the connection was made. A lower number
    /// than before changes nothing; one above the accepted bytes counts as all of them.
    package mutating func bytesAcknowledged(total: UInt64) {
        acknowledged = max(acknowledged, min(total, end))
        while used > 0 {
            let (length, size) = firstLength()
            guard start + length <= acknowledged else { break }
            start += length
            head = (head &+ size) & (ring.count &- 1)
            used -= size
            unacknowledgedFrameCount -= 1
        }
        // Memory is freed when a burst is over, and kept while frames come and go.
        if used == 0, ring.count > DeliveryLedger.trimThreshold {
            ring = []
            head = 0
        }
    }

    /// Notes accepted bytes that are not a user's message, such as a ping.
    package mutating func uncountedBytesAccepted(_ byteCount: Int) {
        // They count as a part of the next frame, which is not acknowledged before they are.
        uncountedByteCount += UInt64(max(byteCount, 0))
        end += UInt64(max(byteCount, 0))
    }

    @inline(__always)
    private mutating func append(_ byte: UInt8) {
        if used == ring.count { grow() }
        ring[(head &+ used) & (ring.count &- 1)] = byte
        used += 1
    }

    private mutating func grow() {
        let unrolled = ring[head...] + ring[..<head]
        ring = Array(unrolled) + Array(repeating: 0, count: max(ring.count, 64))
        head = 0
    }

    /// Returns the first frame's length, and the size of that length in the ring.
    private func firstLength() -> (length: UInt64, size: Int) {
        var length: UInt64 = 0
        var size = 0
        while true {
            let byte = ring[(head &+ size) & (ring.count &- 1)]
            length |= UInt64(byte & 0x7F) &<< UInt64(7 * size)
            size += 1
            if byte < 0x80 { return (length, size) }
        }
    }
}
