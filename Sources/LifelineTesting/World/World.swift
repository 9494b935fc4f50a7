internal import Glibc
internal import LifelineCore
internal import NIOCore
internal import Synchronization

/// A whole system inside a test: machines, programs on them and a network between them, on a clock of their own.
/// Everything in it follows from a seed.
///
/// The programs are real: `Client`, `withServer`, `SessionClient`, `withSessionServer`, a `Fleet` and the code that
/// uses them run unchanged, with their tasks, actors and sleeps. The clocks, dates and random numbers of Swift and C
/// come from the world as well. A task that sleeps for an hour costs nothing.
///
/// These are outside the world: real sockets, files, databases, threads, `DispatchQueue`, the main actor, and
/// `Task.sleep` with a tolerance. A task that returns from one of them makes the story fail, because its seed would not
/// give the same story again. Programs on different hosts should not share an actor: if one of them is killed, the
/// others may wait for it for ever. Values behind a lock may be shared.
///
/// A world belongs to one thread, on which all its programs run, one step at a time. The compiler cannot check that,
/// hence `@unchecked`. Use the world and its hosts only there.
public final class World: @unchecked Sendable {
    /// The number that determines the whole story.
    public let seed: UInt64
    /// The machines, in the order of their addition.
    public private(set) var hosts: [WorldHost] = []
    /// The faults of hosts and connections. Default: none. Setting them replaces the earlier ones.
    public var faults = Faults() { didSet { plan.begin(faults, in: self) } }

    /// Called with the bytes that programs write and read, and with the ends of connections.
    package var onTraffic: ((Traffic) -> Void)?

    let simulation: Simulation
    let network: SimulatedNetwork
    let plan: FaultPlan
    private let limits: SimulationLimits
    private let clock = WorldClock()
    private var conditions: [(text: String, holds: () -> Bool)] = []
    /// The process that runs now; nil if none or the story itself runs.
    private(set) var current: WorldProcess?
    private(set) var outcome: Result<Void, WorldFailure>?
    private var closedPorts: [ObjectIdentifier: ClosedPort] = [:]
    private var streamCount = 0
    private var aliases: [String: [WorldHost]] = [:]
    /// Jobs that other threads enqueued.
    private let outside = Mutex<(jobs: [(UnownedJob, WorldExecutor)], isOver: Bool)>(([], false))

    /// - Parameter keptFaults: the numbers of the faults that happen; nil for all.
    init(seed: UInt64, limits: SimulationLimits, keptFaults: Set<Int>?, isTracing: Bool) {
        self.seed = seed
        self.limits = limits
        simulation = Simulation(seed: seed)
        simulation.isTracing = isTracing
        network = SimulatedNetwork(simulation: simulation)
        plan = FaultPlan(seed: seed, kept: keptFaults)
    }

    // MARK: For stories

    /// The simulated time since the beginning.
    public var now: Duration { simulation.now - MonotonicTime(nanoseconds: 0) }

    /// Returns the machine of this name, to which others connect. Adds it if it does not exist yet.
    public func host(_ name: String) -> WorldHost {
        if let host = hosts.first(where: { $0.name == name }) { return host }
        let host = WorldHost(name, in: self)
        (host.machine.conditions.latency, host.machine.conditions.jitter) = (faults.latency, faults.jitter)
        hosts.append(host)
        return host
    }

    /// Gives several hosts a common name, as a load balancer does. A client that connects to the name reaches a random
    /// one of them.
    public func alias(_ name: String, of hosts: [WorldHost]) { aliases[name] = hosts }

    /// Adds a line to the trace.
    public func note(_ text: String) {
        simulation.note(.text(text), at: current.map { .host($0.host.name) } ?? .story)
    }

    /// Adds a condition that must hold after each further step.
    ///
    /// - Parameter text: says what was expected, for the failure's message.
    public func always(_ text: String, _ condition: @escaping () -> Bool) {
        conditions.append((text, condition))
    }

    /// Waits until a condition holds. It is checked every 10 ms.
    ///
    /// - Throws: `WorldFailure` when it does not hold in time; `CancellationError`.
    public func until(
        _ text: String,
        within timeout: Duration = .seconds(60),
        _ condition: () -> Bool
    ) async throws {
        let deadline = now + timeout
        while !condition() {
            if now >= deadline { throw WorldFailure("Within \(timeout), this did not come to hold: \(text)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Throws if a condition does not hold.
    public func expect(_ condition: Bool, _ text: @autoclosure () -> String) throws {
        if !condition { throw WorldFailure(text()) }
    }

    /// Ends the story as failed.
    public func fail(_ text: String) { fail(text, .expectation) }

    private func fail(_ text: String, _ kind: WorldFailure.Kind) { end(.failure(WorldFailure(text, kind))) }

    // MARK: Running

    /// Whether this thread runs the world.
    var isCurrent: Bool { WorldClock.context == Unmanaged.passUnretained(self).toOpaque() }

    private func end(_ result: Result<Void, WorldFailure>) {
        if outcome != nil { return }
        outcome = result
        let failure: WorldFailure? = if case .failure(let failure) = result { failure } else { nil }
        simulation.note(.storyEnded(failure: failure?.description), at: .story)
    }

    /// Prepares the story's task, which `run()` then runs on the world's thread.
    func begin(_ body: @escaping @Sendable (World) async throws -> Void) {
        let executor = WorldExecutor(world: self, process: nil)
        Task(executorPreference: executor) {
            do {
                try await body(self)
                self.checkConditions()
                self.end(.success(()))
            } catch let failure as WorldFailure {
                self.end(.failure(failure))
            } catch {
                self.end(.failure(WorldFailure("\(error)")))
            }
        }
    }

    /// Runs the world on this thread until the story has ended, and then until its programs have ended.
    func run() -> Result<Void, WorldFailure> {
        clock.enter(self)
        fetchOutsideJobs()
        while outcome == nil { step() }
        plan.end()
        simulation.isTracing = false
        wait(untilEnd: simulation.now + limits.endTime)
        let result = outcome ?? .success(())
        outside.withLock { $0 = ([], true) }
        for host in hosts { host.dismantle() }
        simulation.cancelAllEvents()
        (conditions, onTraffic) = ([], nil)
        clock.leave()
        return result
    }

    /// Cancels the programs' tasks. Programs that do not end are abandoned. Unstructured tasks of programs get a second
    /// more.
    private func wait(untilEnd deadline: MonotonicTime) {
        for host in hosts { host.finish() }
        var steps = 0
        var end = deadline
        while let next = simulation.nextEventTime, next <= end, steps < limits.endSteps {
            runNextEvent(at: next)
            steps += 1
            if end == deadline, !hosts.contains(where: { $0.processes.contains(where: \.runsPrograms) }) {
                end = min(deadline, simulation.now + .seconds(1))
            }
        }
    }

    private func step() {
        if fetchOutsideJobs() {
            return fail(
                "A task came back from outside the world: from a real socket, a file, a database, a thread or a "
                    + "DispatchQueue. What follows would not be the same again.",
                .outside
            )
        }
        guard let next = simulation.nextEventTime else {
            // A moment of real time, in which jobs from other threads may arrive.
            for _ in 0..<100 where outside.withLock({ $0.jobs.isEmpty }) { usleep(1_000) }
            if outside.withLock({ !$0.jobs.isEmpty }) { return }
            return fail("Everything waits, and nothing will happen any more.", .stuck)
        }
        if next - MonotonicTime(nanoseconds: 0) > limits.time {
            return fail("The story has not ended within \(limits.time).", .tooLong)
        }
        runNextEvent(at: next)
        checkConditions()
    }

    private func checkConditions() {
        if let broken = conditions.first(where: { !$0.holds() }) { fail("This held no more: \(broken.text)") }
    }

    private func runNextEvent(at time: MonotonicTime) {
        // Notes and checks outside of programs see the time of a machine that never sleeps.
        clock.set(to: time, uptime: time - MonotonicTime(nanoseconds: 0))
        simulation.runNextEvent()
    }

    /// Runs `body` in the name of a process.
    func run(as process: WorldProcess?, _ body: () -> Void) {
        let previous = current
        enter(process)
        body()
        enter(previous)
    }

    private func enter(_ process: WorldProcess?) {
        current = process
        let now = simulation.now
        clock.set(to: now, uptime: process?.host.machine.uptime ?? now - MonotonicTime(nanoseconds: 0))
    }

    // MARK: Tasks

    /// Moves the date, and no other clock.
    func moveDate(by step: Duration) { clock.moveDate(by: step) }

    /// Schedules a job after a delay of up to 20 µs, which follows from the seed. So tasks run in any order, and the
    /// work of programs takes time.
    ///
    /// - Parameter executor: nil for a job without an executor, which belongs to the running process.
    func schedule(_ job: UnownedJob, on executor: WorldExecutor?) {
        let delay = simulation.random.duration(upTo: .microseconds(20))
        schedule(at: simulation.now + delay, as: executor == nil ? current : executor?.process) {
            if let executor {
                job.runSynchronously(on: executor.asUnownedTaskExecutor())
            } else {
                WorldClock.run(job)
            }
        }
    }

    /// Runs `body` in the name of a process at a time.
    func schedule(at time: MonotonicTime, as process: WorldProcess?, _ body: @escaping () -> Void) {
        if let process {
            process.schedule(at: time, body)
        } else {
            simulation.schedule(at: time) { self.run(as: nil, body) }
        }
    }

    /// Keeps a job that another thread enqueues.
    func enqueueFromOutside(_ job: UnownedJob, on executor: WorldExecutor) {
        outside.withLock { if !$0.isOver { $0.jobs.append((job, executor)) } }
    }

    @discardableResult private func fetchOutsideJobs() -> Bool {
        let jobs = outside.withLock { outside in
            defer { outside.jobs = [] }
            return outside.jobs
        }
        for (job, executor) in jobs { schedule(job, on: executor) }
        return !jobs.isEmpty
    }

    // MARK: Network

    /// The first host has 10.0.0.1.
    func address(of machine: SimulatedHost, port: Int) -> SocketAddress? {
        guard let index = network.hosts.firstIndex(where: { $0 === machine }) else { return nil }
        return try? SocketAddress(ipAddress: "10.0.\((index + 1) / 256).\((index + 1) % 256)", port: port)
    }

    /// One of the hosts that share this name.
    func alias(_ name: String) -> WorldHost? { aliases[name]?.randomElement(using: &simulation.random) }

    /// Answers connection attempts to a host that no program of the world listens on.
    func closedPort(of host: WorldHost) -> any SimulatedListener {
        let id = ObjectIdentifier(host)
        let port = closedPorts[id] ?? ClosedPort(host.machine)
        closedPorts[id] = port
        return port
    }

    func makeStream(to listener: any SimulatedListener, from host: WorldHost) -> SimulatedStream {
        streamCount += 1
        let stream = SimulatedStream(number: streamCount, from: host.machine, to: listener)
        plan.add(stream)
        host.machine.note(.connection(streamCount, .begins(to: listener.host.name)))
        return stream
    }
}

/// The reason for a story's failure.
public struct WorldFailure: Error, Hashable, CustomStringConvertible {
    enum Kind { case expectation, stuck, tooLong, outside }

    public let description: String
    let kind: Kind

    /// - Parameter description: says what was expected.
    public init(_ description: String) { self.init(description, .expectation) }

    init(_ description: String, _ kind: Kind) { (self.description, self.kind) = (description, kind) }

    /// Whether another story fails in the same way: with the same words. The numbers may differ.
    func isLike(_ other: WorldFailure) -> Bool { kind == other.kind && words == other.words }

    private var words: [Substring] {
        description.split { $0.isWhitespace }.filter { word in
            word.contains(where: \.isLetter) && !word.contains(where: \.isNumber)
        }
    }
}

/// Limits on the time of stories.
public struct SimulationLimits: Sendable, Hashable {
    /// The most simulated time until a story ends. Default: 10 minutes. Programs that are to finish among many faults
    /// may need more.
    public var time = Duration.seconds(600)
    /// The simulated time that programs have to end, once they were cancelled at the end of the story. Default: 60 s.
    public var endTime = Duration.seconds(60)
    /// The steps of the simulation that programs have to end. Default: 100,000.
    public var endSteps = 100_000

    /// Makes limits with the default values.
    public init() {}
}
