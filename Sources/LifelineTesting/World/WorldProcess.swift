internal import Lifeline
internal import LifelineCore
internal import LifelineTransport

/// A process of a host of a world: what runs there until it is killed.
///
/// Unchecked, as all that belongs to a world: only the world's thread uses it.
final class WorldProcess: @unchecked Sendable {
    let host: WorldHost
    /// It was killed: what it has yet to do waits until the story has ended, so that its tasks can end then.
    private(set) var isKilled = false
    private var isFrozen = false
    private var frozen: [() -> Void] = []
    private var madeLoop: SimulatedLoop?
    private var transport: NIOTransport?
    /// In the order in which they have begun.
    private var programs: [any AnyProgram] = []
    private var listeners: [Int: SimulatedListeningChannel] = [:]
    /// In the order in which they were made: that of a dictionary would follow from addresses, and differ each time.
    private var channels: [SimulatedChannel] = []
    private var newsTime = MonotonicTime(nanoseconds: 0)
    /// Ephemeral ports begin at 49,152 (RFC 6335).
    private var lastPort = 49_151

    init(on host: WorldHost) {
        self.host = host
        let loop = SimulatedLoop(self)
        madeLoop = loop
        transport = NIOTransport(group: loop, channels: SimulatedChannels(process: self))
    }

    var loop: SimulatedLoop { madeLoop! }
    var world: World? { host.world }

    // MARK: Programs

    func run<Value>(_ running: Program<Value>, _ body: @escaping @Sendable () async throws -> Value) {
        programs.append(running)
        let executor = WorldExecutor(world: world, process: self)
        NIOTransport.$simulated.withValue(transport) {
            ClientEnvironment.$simulatedNetwork.withValue(HostNetwork(process: self)) {
                running.task = Task(executorPreference: executor) {
                    let result: Result<Value, any Error>
                    do { result = .success(try await body()) } catch { result = .failure(error) }
                    self.ended(running, result)
                }
            }
        }
    }

    private func ended<Value>(_ program: Program<Value>, _ result: Result<Value, any Error>) {
        programs.removeAll { $0 === program }
        if case .failure(let error) = result, !program.isWaitedFor, !(error is CancellationError) {
            world?.fail("A program on \(host.name) failed: \(error)")
        }
        program.end(result)
    }

    var runsPrograms: Bool { !programs.isEmpty }

    // MARK: Its end

    /// Nothing of it runs any more, and the kernel closes what it had open.
    func kill() {
        (isKilled, isFrozen) = (true, true)
        for listener in listeners.values { listener.abandon() }
        for channel in channels { channel.abandon() }
        for program in programs { program.kill() }
    }

    /// The story has ended: its programs are to end as well.
    func finish() {
        isFrozen = false
        let waiting = frozen
        frozen = []
        for body in waiting { schedule(at: host.simulation.now, body) }
        for program in programs { program.cancel() }
        if isKilled { closeChannels() }
    }

    private func closeChannels() {
        for channel in channels {
            loop.runSoon { channel.closeNow() }
        }
    }

    /// The world has ended.
    func dismantle() {
        closeChannels()
        for listener in listeners.values { loop.runSoon { listener.closeNow() } }
        madeLoop?.end()
        (programs, listeners, channels, transport, madeLoop) = ([], [:], [], nil, nil)
    }

    // MARK: Running

    /// Runs `body` in its name at a time, unless it is killed before; later where the host sleeps.
    @discardableResult
    func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) -> Simulation.EventID {
        host.simulation.schedule(at: time) { self.perform(body) }
    }

    /// Runs `body` in its name now, or when the host wakes up.
    func perform(_ body: @escaping () -> Void) {
        host.machine.whenAwake { [self] in
            if isFrozen { return frozen.append(body) }
            world?.run(as: self, body)
        }
    }

    /// Runs `body` after a while, behind what was given here before.
    func receiveNews(after delay: Duration, _ body: @escaping () -> Void) {
        newsTime = max(host.simulation.now + delay, newsTime)
        schedule(at: newsTime, body)
    }

    // MARK: Network

    /// The connections that were not closed, in the order in which they were made.
    var connections: [SimulatedChannel] { channels }

    func add(_ channel: SimulatedChannel) { channels.append(channel) }

    func remove(_ channel: SimulatedChannel) { channels.removeAll { $0 === channel } }

    func listener(on port: Int) -> SimulatedListeningChannel? { isKilled ? nil : listeners[port] }

    /// - Parameter listener: nil: it listens no more.
    func setListener(_ listener: SimulatedListeningChannel?, on port: Int) { listeners[port] = listener }

    func makePort() -> Int {
        repeat { lastPort += 1 } while listeners[lastPort] != nil
        return lastPort
    }
}

/// The network, as a client on a host of a world knows it.
private struct HostNetwork: ClientNetwork {
    let process: WorldProcess

    var isAvailableAtFirst: Bool { process.host.machine.reportedStatus }

    func watch(_ report: @Sendable (NetworkStatus) -> Void) async {
        let (changes, continuation) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingNewest(1))
        let process = process
        process.host.machine.observeStatus { isUp in
            process.perform { continuation.yield(isUp) }
        }
        report(isAvailableAtFirst ? .available : .unavailable)
        for await isUp in changes { report(isUp ? .available : .unavailable) }
    }
}
