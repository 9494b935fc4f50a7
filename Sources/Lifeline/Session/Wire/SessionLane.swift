/// One of the two sequences in each direction of a session.
package enum SessionLane: Sendable, Hashable, CaseIterable {
    /// Names of methods, pushes, requests, parts, and responses that end parts. They come to their handlers in the
    /// order in which they were accepted.
    case ordinary
    /// Other responses, and cancels. They are processed as they come, so that a handler that waits for one gets it,
    /// however much else waits for that handler.
    case urgent
}

/// Where a message stands.
package struct SessionPlace: Sendable, Hashable {
    package let lane: SessionLane
    /// 1 for the first of the lane, and so on.
    package let sequence: UInt64

    package init(_ lane: SessionLane, _ sequence: UInt64) {
        self.lane = lane
        self.sequence = sequence
    }
}

/// How much may be under way, or is: in each lane.
package struct SessionWindow: Sendable, Hashable {
    /// The fewest bytes that a peer may grant: a refusal of 1 KiB has room, with what each message counts beside it.
    static var smallestByteCount: Int { 4 << 10 }

    package let frameCount: Int
    package let byteCount: Int

    /// Negative values count as 0.
    package init(frameCount: Int, byteCount: Int) {
        self.frameCount = max(frameCount, 0)
        self.byteCount = max(byteCount, 0)
    }

    /// Whether another message has room beside so much. What a peer sends has to.
    func takes(_ addedByteCount: Int, besides taken: SessionSize) -> Bool {
        taken.frameCount < frameCount && addedByteCount <= byteCount - taken.byteCount
    }
}

/// How much some messages are.
package struct SessionSize: Sendable, Hashable {
    /// Each frame costs this beside its length: records, inbox places and slack. `docs/session-protocol.md` has it.
    package static var frameOverhead: Int { 64 }

    package var frameCount = 0
    package var byteCount = 0

    package init(frameCount: Int = 0, byteCount: Int = 0) {
        self.frameCount = frameCount
        self.byteCount = byteCount
    }

    mutating func add(_ byteCount: Int) {
        frameCount += 1
        self.byteCount += byteCount
    }

    mutating func remove(_ byteCount: Int) {
        frameCount -= 1
        self.byteCount -= byteCount
    }

    static func - (first: SessionSize, second: SessionSize) -> SessionSize {
        SessionSize(
            frameCount: first.frameCount - second.frameCount,
            byteCount: first.byteCount - second.byteCount
        )
    }

    static func + (first: SessionSize, second: SessionSize) -> SessionSize {
        SessionSize(
            frameCount: first.frameCount + second.frameCount,
            byteCount: first.byteCount + second.byteCount
        )
    }
}
