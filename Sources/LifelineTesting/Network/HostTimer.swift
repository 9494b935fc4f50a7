internal import LifelineCore

/// A timer of a program's event loop. It stands still while the machine sleeps.
final class HostTimer {
    /// The deadline that the timer is set to, if any.
    private(set) var deadline: MonotonicTime?

    private let host: SimulatedHost
    private let body: () -> Void
    private var event: Simulation.EventID?
    /// The deadline in the machine's uptime.
    private var dueUptime = Duration.zero

    init(_ host: SimulatedHost, _ body: @escaping () -> Void) {
        self.host = host
        self.body = body
    }

    /// Whether the timer is set.
    var isArmed: Bool { event.map(host.simulation.isPending) ?? false || isDeferred }
    /// Whether it became due while the machine slept.
    private var isDeferred = false
    private var generation = 0

    /// Whether the timer fires by `time`, or at once if that is past, unless the machine sleeps.
    func fires(by time: MonotonicTime) -> Bool {
        deadline != nil && dueUptime <= host.uptime + (time - host.simulation.now)
    }

    /// Sets it to another time; nil turns it off.
    func set(to deadline: MonotonicTime?) {
        if deadline != self.deadline { reset(to: deadline) }
    }

    /// Sets the timer, replacing an earlier deadline.
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
            // The timer may have been set again meanwhile.
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
