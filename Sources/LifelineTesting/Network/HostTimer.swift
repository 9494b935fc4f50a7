package import LifelineCore

/// A timer of a program on a machine: one that comes due while the machine sleeps rings when it wakes up.
package final class HostTimer {
    /// What it is set to; nil when it is not.
    package private(set) var deadline: MonotonicTime?

    private let host: SimulatedHost
    private let body: () -> Void
    private var event: Simulation.EventID?

    init(_ host: SimulatedHost, _ body: @escaping () -> Void) {
        self.host = host
        self.body = body
    }

    /// Whether it is to ring.
    package var isArmed: Bool { event.map(host.simulation.isPending) ?? false || isDeferred }
    /// Whether it has come due while the machine slept.
    private var isDeferred = false
    private var generation = 0

    /// Sets it to another time; nil turns it off.
    func set(to deadline: MonotonicTime?) {
        guard deadline != self.deadline else { return }
        if let event { host.simulation.cancel(event) }
        self.deadline = deadline
        generation += 1
        isDeferred = false
        event = deadline.map { host.simulation.schedule(at: $0) { [weak self] in self?.comeDue() } }
    }

    private func comeDue() {
        event = nil
        isDeferred = true
        let present = generation
        host.whenAwake { [weak self] in
            // It may have been set to another time meanwhile.
            guard let self, isDeferred, generation == present else { return }
            isDeferred = false
            deadline = nil
            body()
        }
    }
}
