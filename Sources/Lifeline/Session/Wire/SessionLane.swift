/// One of the two sequences in each direction of a session.
package enum SessionLane: Sendable, Hashable, CaseIterable {
    /// Names of methods, pushes, requests, parts, and responses that end parts. They reach their handlers in the order
    /// in which they were accepted.
    case ordinary
    /// Other responses, and cancels. They are processed on arrival, so that a handler that waits for one gets it, even
    /// if much else waits for that handler.
    case urgent
}

/// The place of a message.
package struct SessionPlace: Sendable, Hashable {
    package let lane: SessionLane
    /// The place within the lane, from 1 on.
    package let sequence: UInt64

    package init(_ lane: SessionLane, _ sequence: UInt64) {
        self.lane = lane
        self.sequence = sequence
    }
}

/// The limit of frames and bytes under way in each lane.
package struct SessionWindow: Sendable, Hashable {
    /// The fewest bytes that a peer may grant: enough for a refusal of 1 KiB with the overhead of each message.
    static var smallestByteCount: Int { 4 << 10 }

    package let frameCount: Int
    package let byteCount: Int

    /// Negative values count as 0.
    package init(frameCount: Int, byteCount: Int) {
        self.frameCount = max(frameCount, 0)
        self.byteCount = max(byteCount, 0)
    }

    /// Returns whether another message has room besides the taken size. Every message of a peer must have room.
    func takes(_ addedByteCount: Int, besides taken: SessionSize) -> Bool {
        taken.frameCount < frameCount && addedByteCount <= byteCount - taken.byteCount
    }
}

/// The number of some messages, and their bytes.
package struct SessionSize: Sendable, Hashable {
    /// The cost of each frame besides its length: records, inbox places and slack. `docs/session-protocol.md` defines
    /// it.
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
