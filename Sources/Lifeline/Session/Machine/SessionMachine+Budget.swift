internal import LifelineCore

// The session's share of the memory and the handlers of its server. Before an event that may have the session keep
// more, a driver takes from the budget as much as the session lacks. After it, the driver gives back what the session
// does not need.
extension SessionMachine {
    /// Returns how much the session must hold before it takes in a frame; nil when it holds enough.
    package func lacking(toReceive frame: UnsafeRawBufferPointer) -> SessionNeed? {
        // A request counts as come and as running until it is acknowledged.
        let byteCount = 2 * (frame.count + SessionSize.frameOverhead)
        return lacking(byteCount, handlerCount: Self.isNoRequest(frame) ? 0 : 1)
    }

    /// Whether a frame begins with another kind than a request. One that begins with an unknown field may be one.
    private static func isNoRequest(_ frame: UnsafeRawBufferPointer) -> Bool {
        guard let first = frame.first else { return true }
        // The tag of a request may be longer than necessary. Its first byte has the same seven bits then.
        return first & 7 == 2 && UInt32(first & 0x7F) != FieldReader.Tag.delimited(FrameKind.request.rawValue).rawValue
    }

    /// Returns how much the session must hold before it sends a message with so many bytes of content; nil when it
    /// holds enough.
    package func lacking(toSend byteCount: Int) -> SessionNeed? {
        // The name of its method may go before it.
        lacking(2 * SessionSize.frameOverhead + MethodName.maximumByteCount + byteCount, handlerCount: 0)
    }

    /// Returns how much the session must hold for what it keeps; nil when it holds enough.
    package var lacking: SessionNeed? { lacking(0, handlerCount: 0) }

    @inline(__always)
    func lacking(_ byteCount: Int, handlerCount: Int) -> SessionNeed? {
        // A session that shares with no others counts nothing.
        if allowance.byteCount == .max || life.isOver { return nil }
        let need = SessionNeed(byteCount: keptByteCount + byteCount, handlerCount: runningCount + handlerCount)
        let hasEnough = need.byteCount <= allowance.byteCount && need.handlerCount <= allowance.handlerCount
        return hasEnough ? nil : need
    }

    /// Whether the session is to give back some of what it holds: what it does not need for long, or at all.
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

    /// Gives back everything, as nothing is left of the session.
    package mutating func giveBackAll(to budget: inout SessionBudget) {
        budget.giveBack(&allowance, for: 0, handlerCount: 0, isOver: true)
    }

    private var isConnected: Bool { if case .none = life.connection { false } else { true } }
}
