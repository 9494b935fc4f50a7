package import LifelineCore

/// A timer of a program on a machine.
package final class HostTimer {
    /// What the machine's sleep does to a timer.
    enum Clock {
        /// One that comes due while the machine sleeps rings when it wakes up, as a task's sleep on a continuous clock
        /// does.
        case continuous
        /// It stands still while the machine sleeps, as that of an event loop does.
        case uptime
    }

    /// What it is set to; nil when it is not.
    package private(set) var deadline: MonotonicTime?

    private let host: SimulatedHost
    private let clock: Clock
    private let body: () -> Void
    private var event: Simulation.EventID?
    /// When it rings, by the time for which the machine has been awake.
    private var dueUptime = Duration.zero

    init(_ host: SimulatedHost, clock: Clock, _ body: @escaping () -> Void) {
        self.host = host
        self.clock = clock
        self.body = body
    }

    /// Whether it is to ring.
    package var isArmed: Bool { event.map(host.simulation.isPending) ?? false || isDeferred }
    /// Whether it has come due while the machine slept.
    private var isDeferred = false
    private var generation = 0

    /// Whether it rings at `time` at the latest, or at once where that is past, as long as the machine does not sleep.
    func fires(by time: MonotonicTime) -> Bool {
        deadline != nil && dueUptime <= host.uptime + (time - host.simulation.now)
    }

    /// Sets it to another time; nil turns it off.
    func set(to deadline: MonotonicTime?) {
        if deadline != self.deadline { reset(to: deadline) }
    }

    /// Sets it, whatever was left of what it was set to.
    func reset(to deadline: MonotonicTime?) {
        if let event { host.simulation.cancel(event) }
        self.deadline = deadline
        generation += 1
        isDeferred = false
        event = deadline.map { host.simulation.schedule(at: $0) { [weak self] in self?.comeDue() } }
        if let deadline { dueUptime = host.uptime + (deadline - host.simulation.now) }
    }

    private func comeDue() {
        event = nil
        isDeferred = true
        let present = generation
        host.whenAwake { [weak self] in
            // It may have been set to another time meanwhile.
            guard let self, isDeferred, generation == present else { return }
            isDeferred = false
            if clock == .uptime, host.uptime < dueUptime {
                event = host.simulation.schedule(after: dueUptime - host.uptime) { [weak self] in self?.comeDue() }
                return
            }
            deadline = nil
            body()
        }
    }
}
