package import Lifeline
internal import LifelineCore

/// What all sessions of a simulated server share.
package final class SimulatedSessionBudget {
    package typealias Machine = SimulatedSessionEnd.Machine

    private var budget: SessionBudget
    private let pause: Duration

    /// - Parameters:
    ///   - limit: what all sessions may hold together.
    ///   - pause: how long a client stays away that is sent away for want of it.
    package init(limit: SessionAllowance, pause: Duration) {
        budget = SessionBudget(limit: limit)
        self.pause = pause
    }

    /// What sessions hold.
    package var held: SessionAllowance { budget.held }

    /// A frame is about to come in.
    func allow(_ frame: SimulatedSessionLink.Frame, for machine: inout Machine) {
        guard case .message(_, _, let message) = frame else { return }
        switch message.kind {
        // Until it is acknowledged it counts as come and as running.
        case .request: allow(2 * message.byteCount, handlerCount: 1, for: &machine)
        case .push: allow(message.byteCount, for: &machine)
        case .response, .cancel, .blank: break
        }
    }

    /// The user is about to send something.
    func allow(_ payload: OutgoingPayload, for machine: inout Machine) {
        allow(SessionPayload.messageOverhead + payload.byteCount, for: &machine)
    }

    private func allow(_ byteCount: Int, handlerCount: Int = 0, for machine: inout Machine) {
        if machine.endReason != nil { return }
        budget.take(upTo: machine.keptByteCount + byteCount, for: &machine.allowance)
        budget.takeHandlers(upTo: machine.runningCount + handlerCount, for: &machine.allowance)
        machine.allowance.pause = pause
    }

    /// Takes back what a session holds without need.
    ///
    /// - Parameter isConnected: whether it has a connection.
    func takeBackExcess(of machine: inout Machine, isConnected: Bool) {
        // The handlers of a session end with it.
        let isOver = machine.endReason != nil
        let (byteCount, runningCount) = isOver ? (0, 0) : (machine.keptByteCount, machine.runningCount)
        guard
            !isConnected || isOver
                || SessionBudget.isExcessive(machine.allowance, for: byteCount, handlerCount: runningCount)
        else { return }
        budget.giveBack(
            &machine.allowance,
            for: byteCount,
            handlerCount: runningCount,
            isOver: !isConnected || isOver
        )
    }
}
