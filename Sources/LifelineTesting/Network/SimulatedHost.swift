package import LifelineCore

/// A machine with one link to the network.
public final class SimulatedHost {
    /// Its name in the trace.
    public let name: String
    /// The simulation that moves its time.
    package let simulation: Simulation
    /// The conditions of its link.
    public var conditions = LinkConditions()
    /// How long programs on the machine take to learn that the link went up or down, or that the address changed.
    /// Default: 100 ms, over which a monitor waits for more news.
    public var statusDelay = Duration.milliseconds(100)
    /// Whether the link is up.
    public private(set) var isLinkUp = true
    /// Whether the machine sleeps.
    public var isAsleep: Bool { wakeTime > simulation.now }
    /// The number of its present address, counted from 1.
    public private(set) var addressNumber = 1

    /// Whether the link is up, as programs on the machine know it.
    package private(set) var reportedStatus = true
    /// The address that they know of.
    private var reportedAddress = 1
    /// Connections of its clients that are open or opening.
    package internal(set) var openStreamCount = 0
    /// When the machine last fell asleep.
    package private(set) var lastSleepTime = MonotonicTime(nanoseconds: 0)
    private var wakeTime = MonotonicTime(nanoseconds: 0)
    /// How long it slept before it last fell asleep.
    private var earlierSleep = Duration.zero
    /// The work that waits until it wakes up, in order.
    private var deferred: [() -> Void] = []
    private var statusObservers: [(Bool) -> Void] = []

    init(name: String, simulation: Simulation) {
        self.name = name
        self.simulation = simulation
    }

    /// Adds something that has happened here to the trace.
    func note(_ text: @autoclosure () -> String) { note(.text(text())) }

    func note(_ event: @autoclosure () -> Note.Event) { simulation.note(event(), at: .host(name)) }

    /// Takes the link up or down. What was on its way is lost. Programs learn of it after `statusDelay`, unless it is
    /// by then as they knew it.
    public func setLink(up: Bool) {
        guard up != isLinkUp else { return }
        note(.link(isUp: up))
        isLinkUp = up
        report()
    }

    /// Gives the machine another address: nothing reaches it any more on connections made with the one before, and the
    /// peer is not told. Programs learn after `statusDelay` that the network has changed.
    public func changeAddress() {
        addressNumber += 1
        note("address \(addressNumber)")
        if isLinkUp { report() }
    }

    /// Lets the machine sleep: nothing reaches it, and its programs stand still while the time goes on. Their
    /// timers that come due meanwhile fire when it wakes up.
    public func sleep(for duration: Duration) {
        note(.sleep(duration))
        if !isAsleep {
            earlierSleep += lastSleepDuration
            lastSleepTime = simulation.now
        }
        wakeTime = max(wakeTime, simulation.now + duration)
    }

    /// Does something in the name of a program on the machine: now, or when it wakes up.
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
        // Each is a step of its own.
        for body in deferred { simulation.schedule(after: .zero) { self.whenAwake(body) } }
        deferred = []
    }

    /// Whether it is awake, and what has come due while it slept is done.
    package var hasBeenAwake: Bool { wakeTime < simulation.now }

    /// When the machine last woke up, or will.
    package var lastWakeTime: MonotonicTime { wakeTime }

    /// How long its last sleep took, or will.
    package var lastSleepDuration: Duration { wakeTime - lastSleepTime }

    /// How long it has been awake. Timers of an event loop go by it: they stand still with the machine.
    package var uptime: Duration {
        let latestSleep = min(simulation.now, wakeTime) - lastSleepTime
        return simulation.now - MonotonicTime(nanoseconds: 0) - earlierSleep - latestSleep
    }

    func removeObservers() { statusObservers = [] }

    package func observeStatus(_ observer: @escaping (Bool) -> Void) {
        statusObservers.append(observer)
    }

    /// Tells programs how things stand when the delay is over: so what they hear last is true, in whatever order
    /// reports come.
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

    /// How long a packet takes to pass the link.
    var randomLatency: Duration {
        let jitter = conditions.jitter > .zero ? simulation.random.duration(upTo: conditions.jitter) : .zero
        return max(conditions.latency + jitter, .zero)
    }

    /// How long `byteCount` bytes keep others from passing the link.
    func occupation(by byteCount: Int) -> Duration {
        guard let rate = conditions.bytesPerSecond else { return .zero }
        // Doubles hold it with room to spare: no burst is longer than 2⁶⁴ ns at a byte a second.
        return .nanoseconds(Int64(Double(byteCount) / Double(max(rate, 1)) * 1e9))
    }
}
