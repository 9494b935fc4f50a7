internal import LifelineCore

// The session's share of the memory and the handlers of its server. Before an event that may have the session keep
// more, a driver takes from the budget as much as the session lacks. After it, the driver gives back what the session
// does not need.
extension SessionMachine {
    /// Returns how much the session must hold before it takes in a frame; nil when it holds enough.
    package func lacking(for frame: SessionFrame<Content>) -> SessionNeed? {
        guard case .message(_, _, let message) = frame else { return nil }
        return switch message.kind {
        // Until it is acknowledged it counts as come and as running.
        case .request: lacking(2 * message.byteCount, handlerCount: 1)
        case .push: lacking(message.byteCount)
        case .response, .cancel, .blank: nil
        }
    }

    /// Returns how much the session must hold before it sends a message; nil when it holds enough.
    package func lacking(toSend content: @autoclosure () -> Content) -> SessionNeed? {
        lacking(Content.messageOverhead + content().byteCount)
    }

    private func lacking(_ byteCount: @autoclosure () -> Int, handlerCount: Int = 0) -> SessionNeed? {
        // A session that shares with no others counts nothing.
        if allowance.byteCount == .max || life.isOver { return nil }
        let need = SessionNeed(
            byteCount: keptByteCount + byteCount(),
            handlerCount: runningCount + handlerCount
        )
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
