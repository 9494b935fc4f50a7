internal import LifelineCore

/// A timer of a program's event loop. It stands still while the machine sleeps.
final class HostTimer {
    /// What it is set to; nil when it is not.
    private(set) var deadline: MonotonicTime?

    private let host: SimulatedHost
    private let body: () -> Void
    private var event: Simulation.EventID?
    /// When it rings, by the time for which the machine has been awake.
    private var dueUptime = Duration.zero

    init(_ host: SimulatedHost, _ body: @escaping () -> Void) {
        self.host = host
        self.body = body
    }

    /// Whether it is to ring.
    var isArmed: Bool { event.map(host.simulation.isPending) ?? false || isDeferred }
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
            if host.uptime < dueUptime {
                event = host.simulation.schedule(after: dueUptime - host.uptime) { [weak self] in self?.comeDue() }
                return
            }
            deadline = nil
            body()
        }
    }
}
