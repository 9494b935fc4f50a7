internal import LifelineCore

// The session's share of the memory and the handlers of its server. Before an event after which the session may keep
// more, a driver takes the missing share from the budget. After the event, the driver gives back the part that the
// session does not need.
extension SessionMachine {
    /// Returns how much the session must hold before it takes in a frame; nil when it holds enough.
    package func lacking(toReceive frame: UnsafeRawBufferPointer) -> SessionNeed? {
        // A request counts twice until it is acknowledged: as received and as running.
        let byteCount = 2 * (frame.count + SessionSize.frameOverhead)
        return lacking(byteCount, handlerCount: Self.isNoRequest(frame) ? 0 : 1)
    }

    /// Whether a frame begins with another kind than a request. A frame that begins with an unknown field may be a
    /// request.
    private static func isNoRequest(_ frame: UnsafeRawBufferPointer) -> Bool {
        guard let first = frame.first else { return true }
        // The tag of a request may be longer than necessary. Then its first byte has the same seven bits.
        return first & 7 == 2 && UInt32(first & 0x7F) != FieldReader.Tag.delimited(FrameKind.request.rawValue).rawValue
    }

    /// Returns how much the session must hold before it sends a message with so many bytes of content; nil when it
    /// holds enough.
    package func lacking(toSend byteCount: Int) -> SessionNeed? {
        // The name of the method may go before the message.
        lacking(2 * SessionSize.frameOverhead + MethodName.maximumByteCount + byteCount, handlerCount: 0)
    }

    /// The share that the session must hold for its present content; nil when it holds enough.
    package var lacking: SessionNeed? { lacking(0, handlerCount: 0) }

    @inline(__always)
    func lacking(_ byteCount: Int, handlerCount: Int) -> SessionNeed? {
        // A session without a shared budget counts nothing. An ended one needs a share only while handlers run, for
        // their replies to durable calls.
        if allowance.byteCount == .max || (life.isOver && running.count == 0) { return nil }
        let need = SessionNeed(byteCount: keptByteCount + byteCount, handlerCount: runningCount + handlerCount)
        let hasEnough = need.byteCount <= allowance.byteCount && need.handlerCount <= allowance.handlerCount
        return hasEnough ? nil : need
    }

    /// Whether the session should give back a part of its share, because it will not need that soon, or at all.
    package var holdsExcess: Bool {
        if allowance.byteCount == .max { return false }
        return isConnected
            ? SessionBudget.isExcessive(allowance, for: keptByteCount, handlerCount: runningCount)
            : allowance.byteCount > keptByteCount || allowance.handlerCount > runningCount
    }

    /// Gives back what the session holds without need.
    package mutating func giveBackExcess(to budget: inout SessionBudget) {
        budget.giveBack(&allowance, for: keptByteCount, handlerCount: runningCount, isOver: !isConnected)
    }

    /// Gives back the whole share, because nothing is left of the session.
    package mutating func giveBackAll(to budget: inout SessionBudget) {
        budget.giveBack(&allowance, for: 0, handlerCount: 0, isOver: true)
    }

    private var isConnected: Bool { if case .none = life.connection { false } else { true } }
}
