package import LifelineCore

/// A machine with one link to the network.
public final class SimulatedHost {
    /// Its name in the trace.
    public let name: String
    /// The simulation that it belongs to.
    package let simulation: Simulation
    /// The conditions of its link.
    public var conditions = LinkConditions()
    /// The time until programs on the machine learn that the link went up or down, or that the address changed.
    /// Default: 100 ms, for which a network monitor collects changes.
    public var statusDelay = Duration.milliseconds(100)
    /// Whether the link is up.
    public private(set) var isLinkUp = true
    /// Whether the machine sleeps.
    public var isAsleep: Bool { wakeTime > simulation.now }
    /// The number of its present address, counted from 1.
    public private(set) var addressNumber = 1

    /// Whether the link is up, as far as programs on the machine know.
    package private(set) var reportedStatus = true
    /// The address that programs on the machine know.
    private var reportedAddress = 1
    /// Connections of its clients that are open or opening.
    package internal(set) var openStreamCount = 0
    /// When the machine last fell asleep.
    package private(set) var lastSleepTime = MonotonicTime(nanoseconds: 0)
    private var wakeTime = MonotonicTime(nanoseconds: 0)
    /// The total time of its sleep before the present or last one.
    private var earlierSleep = Duration.zero
    /// The work that waits until it wakes up, in order.
    private var deferred: [() -> Void] = []
    private var statusObservers: [(Bool) -> Void] = []

    init(name: String, simulation: Simulation) {
        self.name = name
        self.simulation = simulation
    }

    /// Adds an event on this machine to the trace.
    func note(_ text: @autoclosure () -> String) { note(.text(text())) }

    func note(_ event: @autoclosure () -> Note.Event) { simulation.note(event(), at: .host(name)) }

    /// Takes the link up or down. Packets under way are lost. Programs learn of the change after `statusDelay`, unless
    /// the link has its earlier state again by then.
    public func setLink(up: Bool) {
        guard up != isLinkUp else { return }
        note(.link(isUp: up))
        isLinkUp = up
        report()
    }

    /// Gives the machine another address. Nothing reaches it any more over connections from the earlier address, and
    /// the peers are not told. Programs learn after `statusDelay` that the network has changed.
    public func changeAddress() {
        addressNumber += 1
        note("address \(addressNumber)")
        if isLinkUp { report() }
    }

    /// Lets the machine sleep: nothing reaches it, and its programs stand still while the time goes on. Timers of
    /// `ContinuousClock` that come due meanwhile fire when it wakes up. Timers of event loops and of `SuspendingClock`
    /// count no sleep, and fire that much later.
    public func sleep(for duration: Duration) {
        note(.sleep(duration))
        if !isAsleep {
            earlierSleep += lastSleepDuration
            lastSleepTime = simulation.now
        }
        wakeTime = max(wakeTime, simulation.now + duration)
    }

    /// Runs `body` for a program on the machine: now, or when the machine wakes up.
    package func whenAwake(_ body: @escaping () -> Void) {
        guard isAsleep else { return body() }
        if deferred.isEmpty { simulation.schedule(at: wakeTime) { self.wake() } }
        deferred.append(body)
    }

    private func wake() {
        if isAsleep {
            simulation.schedule(at: wakeTime) { self.wake() }
            return
        }
        // Each one is a separate step.
        for body in deferred { simulation.schedule(after: .zero) { self.whenAwake(body) } }
        deferred = []
    }

    /// Whether it is awake, and has finished the work that became due during its sleep.
    package var hasBeenAwake: Bool { wakeTime < simulation.now }

    /// When the machine last woke up, or will.
    package var lastWakeTime: MonotonicTime { wakeTime }

    /// The duration of its last sleep, or of the present one.
    package var lastSleepDuration: Duration { wakeTime - lastSleepTime }

    /// The time for which it has been awake. Timers of an event loop use it: they stand still while the machine sleeps.
    package var uptime: Duration {
        let latestSleep = min(simulation.now, wakeTime) - lastSleepTime
        return simulation.now - MonotonicTime(nanoseconds: 0) - earlierSleep - latestSleep
    }

    func removeObservers() { statusObservers = [] }

    package func observeStatus(_ observer: @escaping (Bool) -> Void) {
        statusObservers.append(observer)
    }

    /// Reports the state at the end of the delay, so that the last report is true, in whatever order reports arrive.
    private func report() {
        simulation.schedule(after: statusDelay) {
            self.whenAwake {
                let isUp = self.isLinkUp
                guard isUp != self.reportedStatus || (isUp && self.addressNumber != self.reportedAddress) else {
                    return
                }
                self.reportedStatus = isUp
                if isUp { self.reportedAddress = self.addressNumber }
                for observer in self.statusObservers { observer(isUp) }
            }
        }
    }

    /// Whether packets pass the link.
    var passesPackets: Bool { isLinkUp && !isAsleep && !conditions.losesEverything }

    /// The time that a packet takes to pass the link.
    var randomLatency: Duration {
        let jitter = conditions.jitter > .zero ? simulation.random.duration(upTo: conditions.jitter) : .zero
        return max(conditions.latency + jitter, .zero)
    }

    /// The time for which `byteCount` bytes occupy the link.
    func occupation(by byteCount: Int) -> Duration {
        guard let rate = conditions.bytesPerSecond else { return .zero }
        // Doubles hold it with room to spare: no burst is longer than 2⁶⁴ ns at a byte a second.
        return .nanoseconds(Int64(Double(byteCount) / Double(max(rate, 1)) * 1e9))
    }
}
