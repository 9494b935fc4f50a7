package import Lifeline

/// What all sessions of a simulated server share.
package final class SimulatedSessionBudget {
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

    func take(_ need: SessionNeed, for machine: inout SimulatedSessionEnd.Machine) {
        budget.take(need, pause: pause, for: &machine.allowance)
    }

    func takeBackExcess(of machine: inout SimulatedSessionEnd.Machine) {
        // The handlers of a session end with it, so that nothing is left of it.
        if machine.endReason != nil {
            machine.giveBackAll(to: &budget)
        } else if machine.holdsExcess {
            machine.giveBackExcess(to: &budget)
        }
    }
}
