internal import Lifeline
internal import LifelineCore
internal import NIOCore

/// A machine of a world. Its programs reach those of other hosts by `tcp://NAME:PORT`.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
public final class WorldHost: @unchecked Sendable {
    /// Its name, which other hosts connect to.
    public let name: String
    /// Its link to the network, and its sleep.
    public let machine: SimulatedHost
    private(set) weak var world: World?
    /// Only the last one runs.
    private(set) var processes: [WorldProcess] = []
    private var disks: [any WorldDisk] = []
    /// Listens on all ports.
    private(set) var simulatedServer: SimulatedServer?
    /// The disk of all its databases.
    var disk = DiskCondition()
    /// The program to restart after a kill.
    private var service: (@Sendable () async throws -> Void)?

    init(_ name: String, in world: World) {
        (self.name, self.world) = (name, world)
        machine = world.network.addHost(name)
        processes = [WorldProcess(on: self)]
    }

    var simulation: Simulation { machine.simulation }
    var process: WorldProcess { processes[processes.count - 1] }

    /// Runs a program on the host, a moment later. Its clients and servers of Lifeline use the world's network.
    ///
    /// - Returns: the running program. If it throws and no task waits for its value, the world fails.
    @discardableResult
    public func run<Value: Sendable>(
        _ program: @escaping @Sendable () async throws -> Value
    ) -> Program<Value> {
        let running = Program<Value>(on: name)
        process.run(running, program)
        return running
    }

    /// Runs a program that faults may kill. It is then started again, as a service manager would do.
    public func serve(_ program: @escaping @Sendable () async throws -> Void) {
        service = program
        run(program)
    }

    /// Makes a database on the host's disk. Make it once: all processes of the host use it, and it survives their
    /// kills.
    public func database<Content: Sendable>(_ content: Content) -> WorldDatabase<Content> {
        let database = WorldDatabase(content, on: self)
        disks.append(database)
        return database
    }

    /// Kills the process with all its programs, as SIGKILL does: they stop at once, and the kernel closes their
    /// connections.
    ///
    /// - Parameter restartDelay: the time until the program of `serve` is started again; nil for never.
    public func kill(restartingAfter restartDelay: Duration? = nil) {
        machine.note(.killed)
        process.kill()
        // In the name of the killed process, so that its tasks do not go on when their work on the disk fails.
        world?.run(as: process) {
            for disk in disks { disk.processWasKilled() }
        }
        processes.append(WorldProcess(on: self))
        guard let restartDelay else { return }
        process.schedule(at: simulation.now + restartDelay) {
            // There is none if the story has ended meanwhile.
            guard let service = self.service else { return }
            self.machine.note(.started)
            self.run(service)
        }
    }

    /// The number of processes so far: one more than the number of kills.
    package var processCount: Int { processes.count }

    /// Runs a server of a simulation on the host in place of programs: it listens on all ports.
    package func run(_ server: SimulatedServer) { simulatedServer = server }

    /// Calls `body` with each connection that programs here have made and not closed. The status is nil unless the
    /// connection is open.
    package func forEachConnection(_ body: (SimulatedStream, ChannelStatus?) -> Void) {
        for channel in process.connections where channel.side == .client { body(channel.connection, channel.status) }
    }

    /// Whether a program here has the connection, and has not closed it.
    package func hasConnection(_ stream: SimulatedStream) -> Bool {
        process.connections.contains { $0.connection === stream }
    }

    /// The state of a connection that a program here has made; nil unless it is open.
    package func status(of stream: SimulatedStream?) -> ChannelStatus? {
        process.connections.first { $0.connection === stream && $0.side == .client }?.status
    }

    /// Whether a program starts again after a kill.
    var isService: Bool { service != nil }

    var hasDatabase: Bool { !disks.isEmpty }

    /// How a commit on its disk fails now; nil if it succeeds. A fault of one commit is used up.
    func takeDiskFailure() -> DiskCondition.Failure? {
        guard let failure = disk.takeFailure(at: simulation.now) else { return nil }
        machine.note(.text("a commit fails: \(failure.error.code)"))
        return failure
    }

    /// The story has ended, so the programs must end.
    func finish() {
        service = nil
        for process in processes { process.finish() }
    }

    /// The world has ended.
    func dismantle() {
        for process in processes { process.dismantle() }
        (processes, disks) = ([], [])
        simulatedServer = nil
        machine.removeObservers()
    }

    /// The host of this name, seen from this one.
    func find(_ name: String) -> WorldHost? {
        switch name {
        case "127.0.0.1", "localhost", "0.0.0.0", "::", "::1": self
        default:
            world?.alias(name)
                ?? world?.hosts.first { $0.name == name || world?.address(of: $0.machine, port: 0)?.ipAddress == name }
        }
    }
}
