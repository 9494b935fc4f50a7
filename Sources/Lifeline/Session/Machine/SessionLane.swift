/// One of the two sequences in each direction of a session.
package enum SessionLane: Sendable, Hashable, CaseIterable {
    /// Requests, pushes, and responses that end pushes. They come to their handlers in the order in which they were accepted.
    case ordinary
    /// Other responses, and cancellations. They are processed as they come, so that a handler that waits for one gets it,
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

    /// The place of a frame as the numbers on the wire say it, of which 0 is none; nil where both are.
    package static func read(sequence: UInt64, urgentSequence: UInt64) throws(SessionViolation) -> SessionPlace? {
        switch (sequence, urgentSequence) {
        case (0, 0): nil
        case (_, 0): SessionPlace(.ordinary, sequence)
        case (0, _): SessionPlace(.urgent, urgentSequence)
        default: throw .wrongPlace
        }
    }
}

/// Something of each lane.
struct SessionLanes<Value: Sendable>: Sendable {
    var ordinary: Value
    var urgent: Value

    /// Reads something of a lane's without copying the lane, which the subscript's getter does.
    @inline(__always) func read<Result>(_ lane: SessionLane, _ body: (Value) -> Result) -> Result {
        switch lane {
        case .ordinary: body(ordinary)
        case .urgent: body(urgent)
        }
    }

    subscript(lane: SessionLane) -> Value {
        get { read(lane) { $0 } }
        _modify {
            switch lane {
            case .ordinary: yield &ordinary
            case .urgent: yield &urgent
            }
        }
    }
}

/// The last places up to which everything was processed.
package struct SessionAcknowledgement: Sendable, Hashable {
    package var ordinary: UInt64
    package var urgent: UInt64

    package init(ordinary: UInt64 = 0, urgent: UInt64 = 0) {
        self.ordinary = ordinary
        self.urgent = urgent
    }
}

/// How far one side is with what the other has sent.
package struct SessionProgress: Sendable, Hashable {
    /// Everything up to these places was processed.
    package var processed: SessionAcknowledgement
    /// Every ordinary message up to this place has come, and needs not be sent again; what is below `processed` says nothing.
    /// Urgent ones are processed as they come.
    package var received: UInt64

    package init(processed: SessionAcknowledgement, received: UInt64) {
        self.processed = processed
        self.received = received
    }

    /// Nothing has come.
    static let none = SessionProgress(processed: SessionAcknowledgement(), received: 0)
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

    /// The same for messages of this side's own users, of which one alone may be larger: it would wait for ever.
    func takesOwn(_ addedByteCount: Int, besides taken: SessionSize) -> Bool {
        (taken.frameCount == 0 && frameCount > 0) || takes(addedByteCount, besides: taken)
    }
}

/// How much some messages are.
package struct SessionSize: Sendable, Hashable {
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

    static func + (first: SessionSize, second: SessionSize) -> SessionSize {
        SessionSize(
            frameCount: first.frameCount + second.frameCount,
            byteCount: first.byteCount + second.byteCount
        )
    }
}
