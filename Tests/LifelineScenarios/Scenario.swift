internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A random story that a seed determines: a client, a server, and disturbances of both and of their network. The client
/// is a real one, with its tasks and channels. A witness checks the guarantees after every step.
package struct Scenario: Sendable {
    /// The result of a story.
    package struct Result: Sendable {
        /// The first violation, if any.
        package let failure: String?
        package let eventCount: Int
        package let simulatedTime: Duration
        /// Empty without tracing.
        package let trace: [String]
        /// The names of the steps and events that occurred; empty without tracing.
        package let seen: Set<String>
    }

    private let seed: UInt64
    private let isTracing: Bool

    /// - Parameter isTracing: whether to record a trace, which takes about as much time as the rest.
    package init(seed: UInt64, isTracing: Bool) { (self.seed, self.isTracing) = (seed, isTracing) }

    /// Plays the story in a world of its own.
    package func run() async -> Result {
        var limits = SimulationLimits()
        (limits.time, limits.endTime) = (.seconds(20_000), .seconds(1))
        let record = ScenarioRecord()
        let runner = StoryRunner(limits: limits) { world in try await ScenarioStory(in: world, record).play() }
        let played = await runner.play(seed, nil, isTracing: isTracing)
        return Result(
            failure: played.failure?.description,
            eventCount: record.eventCount,
            simulatedTime: record.time,
            trace: played.trace,
            seen: record.seen
        )
    }
}

/// The counts of a story. Unchecked: only its world's thread uses it until the story ends.
final class ScenarioRecord: @unchecked Sendable {
    fileprivate(set) var eventCount = 0
    fileprivate(set) var time = Duration.zero
    fileprivate(set) var seen: Set<String> = []
}

/// Unchecked, like all parts of a world: only the world's thread uses it.
final class ScenarioStory: @unchecked Sendable {
    let world: World
    let serverHost: WorldHost
    let server: SimulatedServer
    let user: ClientUser
    let witness: Witness
    var random: SimulationRandom
    private let record: ScenarioRecord

    init(in world: World, _ record: ScenarioRecord) async throws {
        (self.world, self.record) = (world, record)
        // Other numbers than the world's own generator has.
        random = SimulationRandom(seed: world.seed &+ 1 << 32)
        let clientHost = world.host("client")
        serverHost = world.host("server")
        let conditions = LinkConditions.random(using: &random)
        for host in world.hosts { host.machine.conditions = conditions }
        server = SimulatedServer(on: serverHost.machine, configuration: .random(using: &random))
        serverHost.run(server)
        let configuration = ClientUser.Configuration.random(using: &random)
        if Int.random(in: 0..<8, using: &random) == 0 {
            clientHost.machine.setLink(up: false)
            try await Task.sleep(for: .seconds(1))
        }
        user = try await ClientUser.make(
            on: clientHost,
            in: world,
            connectingTo: "server",
            configuration: configuration
        )
        witness = Witness(user, server)
    }

    var client: SimulatedHost { user.host.machine }

    func play() async throws {
        world.always("what the witness checks") { [witness, record, unowned world] in
            witness.check()
            record.eventCount += 1
            (record.time, record.seen) = (world.now, witness.seen)
            // Far more than in any scenario.
            if record.eventCount > 3_000_000 { world.fail("events without end") }
            if let failure = witness.failure { world.fail(failure) }
            return true
        }
        switch Int.random(in: 0..<50, using: &random) {
        case 0:
            user.close()
            user.start()
        case 1:
            user.start()
            user.cancel()
        default: user.start()
        }
        for _ in 0..<Int.random(in: 5...40, using: &random) {
            disturb()
            // Often short, so that disturbances overlap; sometimes long enough for everything to time out.
            let limit: Duration =
                [.milliseconds(50), .seconds(1), .seconds(10), .seconds(60)]
                .randomElement(using: &random) ?? .zero
            try await Task.sleep(for: .milliseconds(Int64.random(in: 0...limit.milliseconds, using: &random)))
        }
        try await recover()
        try await end()
        server.onMessage = nil
        server.onClose = nil
    }

    /// Ends all disturbances for long enough that the client is ready again, or has given a reason why not.
    private func recover() async throws {
        world.note("all is well from now on")
        for host in world.hosts {
            // On a slow link, full buffers alone can outlast a short heartbeat.
            host.machine.conditions = LinkConditions()
            host.machine.setLink(up: true)
        }
        if !server.isRunning { server.restart() }
        server.behavior = .accepting
        server.cancelCuts()
        let awake = world.hosts.map { $0.machine.lastWakeTime - client.simulation.now }.max() ?? .zero
        if awake > .zero { try await Task.sleep(for: awake) }
        user.reads = true
        user.send([1], policy: .drop(after: .seconds(1)))
        // Without a heartbeat, the client notices a lost peer after TCP's 15 retransmissions, about 15 minutes, or, if
        // the peer had no room, after up to 15 probes of 2 minutes.
        try await Task.sleep(for: user.configuration.asks ? .seconds(200) : .seconds(3_000))
        witness.checkRecovery()
        if user.state == .gaveUp {
            user.reconnect()
            try await Task.sleep(for: .seconds(100))
            if user.state != .ready { world.fail("\(user.state) after it was asked to reconnect") }
        }
        user.send([2])
        try await Task.sleep(for: .seconds(200))
        witness.checkEnd()
    }

    private func end() async throws {
        let wasReady = user.state == .ready
        user.close()
        try await Task.sleep(for: user.configuration.client.connection.closeTimeout * 3)
        witness.checkClosed()
        let last = user.events.last
        if wasReady, last?.transition.reason.code != .drained {
            world.fail("a good connection is closed, and that is \(last?.description ?? "not told")")
        }
    }
}

extension Scenario {
    /// Describes a failure, with the command that replays it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "scenario \(seed) failed: \(what); replay: scripts/soak --scenario \(seed)"
    }
}

extension Duration {
    var milliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}
