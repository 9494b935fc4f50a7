package import Lifeline

/// The memory and the handlers that all sessions of a simulated server share.
package final class SimulatedSessionBudget {
    private var budget: SessionBudget
    private let pause: Duration

    /// - Parameters:
    ///   - limit: the most that all sessions hold together.
    ///   - pause: how long a client stays away that is sent away because nothing is left.
    package init(limit: SessionAllowance, pause: Duration) {
        budget = SessionBudget(limit: limit)
        self.pause = pause
    }

    /// The sum of what the sessions hold.
    package var held: SessionAllowance { budget.held }

    func take(_ need: SessionNeed, for machine: inout SessionMachine) {
        budget.take(need, pause: pause, for: &machine.allowance)
    }

    func takeBackExcess(of machine: inout SessionMachine) {
        // The handlers of a session end with it, so that nothing is left of it.
        if machine.endReason != nil {
            machine.giveBackAll(to: &budget)
        } else if machine.holdsExcess {
            machine.giveBackExcess(to: &budget)
        }
    }
}
