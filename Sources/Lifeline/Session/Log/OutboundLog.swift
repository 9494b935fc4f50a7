internal import LifelineCore

/// The encoded frames of one lane until they are acknowledged.
///
/// ``append(byteCount:capacity:tag:write:)`` writes a frame once, in its wire form: its length and its content. Sending
/// it, now or again over the next connection, hands out these bytes. Frames have places, which count from 1.
///
/// The frames stand one after the other in one circular buffer, and a ring has a record of 12 bytes for each. Frames
/// that are acknowledged out of order keep their record until those before them are acknowledged too. If they become
/// many, the frames before them, the stragglers, are moved out of the buffer.
///
/// All operations take constant time for each frame on average. Memory depends on the kept frames.
package struct OutboundLog: ~Copyable {
    /// The log's record of a frame in its buffer.
    struct Record: BitwiseCopyable, Sendable {
        /// The low half of the position of the frame.
        var start: UInt32
        /// The length of the frame with its length prefix; after its acknowledgement, the length of its space.
        var byteCount: UInt32
        var tag: Tag
    }

    /// A frame that was moved out of the buffer. The peer has received it, because it has acknowledged a later one.
    struct Straggler: Sendable {
        /// An estimate of a straggler's memory besides its bytes: its slot in the queue and the header of its array.
        static let overhead = 96

        var tag: Tag
        let bytes: [UInt8]
    }

    // MARK: Frames

    /// The records by place. The first one is never acknowledged.
    var records = Ring<Record>(nextNumber: 1)
    /// The frames of `records`.
    var storage = Storage()
    /// The stragglers by place, all below the first one of `records`.
    var stragglers = SparseQueue<Straggler>()
    /// The approximate memory of the stragglers in bytes.
    var stragglerByteCount = 0

    /// The number of acknowledged `records`.
    var acknowledgedCount = 0
    /// The space of the acknowledged frames of `records`.
    var acknowledgedByteCount = 0
    /// The number of unacknowledged frames that mean nothing by themselves: blanks and names of methods.
    package internal(set) var fillerCount = 0

    // MARK: Places

    /// The highest place that was ever acknowledged, or 0.
    package internal(set) var highestAcknowledged: UInt64 = 0
    /// The place of the frame to be sent next. Always above `highestAcknowledged`.
    package internal(set) var nextToSend: UInt64 = 1
    /// The place after the highest one that was ever sent.
    package internal(set) var sentEnd: UInt64 = 1

    // MARK: Sizes

    /// All frames that are not acknowledged, with their cost.
    package internal(set) var keptSize = SessionSize()
    /// The frames that were ever sent and are not acknowledged.
    package internal(set) var unacknowledgedSize = SessionSize()
    /// The part of them to be sent again.
    var resentSize = SessionSize()

    package init() {}

    /// The lowest place that is not acknowledged; `next` if there is none.
    package var first: UInt64 { stragglers.first?.number ?? records.first }
    /// The place of the next frame.
    @inline(__always) package var next: UInt64 { records.next }
    /// Whether there are frames to send.
    @inline(__always) package var hasUnsent: Bool { nextToSend < records.next }
    /// The approximate memory of the log.
    package var bytesHeld: Int { storage.capacity + records.bytesHeld + stragglerByteCount }

    /// Adds a frame and returns its place.
    ///
    /// - Parameters:
    ///   - byteCount: the length of the frame with its length prefix, which is in its shortest form
    ///   - capacity: the space to reserve, so that a longer frame can replace this one; `byteCount` if nil
    ///   - tag: the facts about the frame
    ///   - write: writes all bytes of the frame
    @inline(__always)
    package mutating func append(
        byteCount: Int,
        capacity: Int? = nil,
        tag: Tag,
        write: (UnsafeMutableRawPointer) -> Void
    ) -> UInt64 {
        let space = capacity ?? byteCount
        precondition(0 < byteCount && byteCount <= space, "The frame is empty or has no room in its capacity.")
        let start = storage.append(space)
        let place = records.next
        records.append(Record(start: start, byteCount: UInt32(truncatingIfNeeded: byteCount), tag: tag))
        keptSize.add(Self.cost(byteCount))
        if tag.isFiller { fillerCount += 1 }
        write(storage.pointer(to: start))
        return place
    }

    /// Removes all frames, and begins again with place 1.
    package mutating func removeAll() {
        self = OutboundLog()
    }

    /// The cost of a frame: its length without the length prefix, and 64.
    @inline(__always)
    package static func cost(_ byteCount: Int) -> Int {
        byteCount &+ SessionSize.frameOverhead &- (byteCount <= 128 ? 1 : longPrefix(byteCount))
    }

    /// The length of the length prefix of a frame of more than 128 bytes. A prefix of `n` bytes announces less than
    /// 2⁷ⁿ.
    private static func longPrefix(_ byteCount: Int) -> Int {
        switch byteCount {
        case ..<(1 << 14 + 2): 2
        case ..<(1 << 21 + 3): 3
        case ..<(1 << 28 + 4): 4
        default: 5
        }
    }
}

/// @unchecked Sendable, because only the log owns the memory behind its pointers.
extension OutboundLog: @unchecked Sendable {}
