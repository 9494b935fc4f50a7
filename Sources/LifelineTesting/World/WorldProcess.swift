internal import Lifeline
internal import LifelineCore
internal import LifelineTransport

/// A process on a host of a world, until it is killed.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class WorldProcess: @unchecked Sendable {
    let host: WorldHost
    /// Whether it was killed. Its remaining work waits for the end of the story, so that its tasks can end then.
    private(set) var isKilled = false
    private var isFrozen = false
    private var frozen: [() -> Void] = []
    private var madeLoop: SimulatedLoop?
    private var transport: NIOTransport?
    /// In the order of their start.
    private var programs: [any AnyProgram] = []
    private var listeners: [Int: SimulatedListeningChannel] = [:]
    /// In the order of their creation. The order of a dictionary would depend on addresses, and differ each time.
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
        running.process = self
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

    /// Stops everything in it at once. The kernel closes its sockets.
    func kill() {
        (isKilled, isFrozen) = (true, true)
        for listener in listeners.values { listener.abandon() }
        for channel in channels { channel.abandon() }
        for program in programs { program.kill() }
    }

    /// The story has ended, so the programs must end.
    func finish() {
        isFrozen = false
        let waiting = frozen
        frozen = []
        for body in waiting { schedule(at: host.simulation.now, body) }
        for program in programs { program.finish() }
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

    /// Runs `body` for the process at a time, unless it is killed before; later if the host sleeps.
    @discardableResult
    func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) -> Simulation.EventID {
        host.simulation.schedule(at: time) { self.perform(body) }
    }

    /// Runs `body` for the process once the host has been awake for `uptime`, as timers of the kernel do that count no
    /// sleep.
    func schedule(atUptime uptime: Duration, _ body: @escaping () -> Void) {
        schedule(at: host.simulation.now + max(.zero, uptime - host.machine.uptime)) { [self] in
            if host.machine.uptime < uptime { schedule(atUptime: uptime, body) } else { body() }
        }
    }

    /// Runs `body` for the process now, or when the host wakes up.
    func perform(_ body: @escaping () -> Void) {
        host.machine.whenAwake { [self] in
            if isFrozen { return frozen.append(body) }
            world?.run(as: self, body)
        }
    }

    /// Runs `body` after a while, and after earlier calls.
    func receiveNews(after delay: Duration, _ body: @escaping () -> Void) {
        newsTime = max(host.simulation.now + delay, newsTime)
        schedule(at: newsTime, body)
    }

    // MARK: Network

    /// The open connections, in the order of their creation.
    var connections: [SimulatedChannel] { channels }

    func add(_ channel: SimulatedChannel) { channels.append(channel) }

    func remove(_ channel: SimulatedChannel) { channels.removeAll { $0 === channel } }

    func listener(on port: Int) -> SimulatedListeningChannel? { isKilled ? nil : listeners[port] }

    /// - Parameter listener: nil to stop listening.
    func setListener(_ listener: SimulatedListeningChannel?, on port: Int) { listeners[port] = listener }

    func makePort() -> Int {
        repeat { lastPort += 1 } while listeners[lastPort] != nil
        return lastPort
    }
}

/// The network status, as a client on a host of a world sees it.
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
