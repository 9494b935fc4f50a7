internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A random story of sessions that a seed determines: a client, a server, their users, and faults of their network and
/// processes. All programs are real ones. A record checks the promises to users, and a witness the frames of all
/// connections.
package struct SessionScenario: Sendable {
    /// The result of a story.
    package struct Result: Sendable {
        /// The first violation, if any.
        package let failure: String?
        package let totals: Totals
        package let simulatedTime: Duration
        /// Empty without tracing.
        package let trace: [String]
    }

    private let seed: UInt64
    private let isTracing: Bool

    /// - Parameter isTracing: whether to record a trace.
    package init(seed: UInt64, isTracing: Bool = false) { (self.seed, self.isTracing) = (seed, isTracing) }

    /// Plays the story in a world of its own.
    package func run() async -> Result {
        var limits = SimulationLimits()
        (limits.time, limits.endTime) = (.seconds(3_000), .seconds(10))
        let outcome = Outcome()
        let runner = StoryRunner(limits: limits) { world in
            let story = SessionStory(in: world)
            try await story.play()
            (outcome.totals, outcome.time) = (story.totals, world.now)
        }
        let played = await runner.play(seed, nil, isTracing: isTracing)
        return Result(
            failure: played.failure?.description,
            totals: outcome.totals,
            simulatedTime: outcome.time,
            trace: played.trace
        )
    }

    /// Unchecked: only the story's thread uses it until the story ends.
    private final class Outcome: @unchecked Sendable {
        var totals = Totals()
        var time = Duration.zero
    }

    /// Describes a failure, with the command that replays it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "session scenario \(seed) failed: \(what); replay: scripts/soak --session-scenario \(seed)"
    }
}

/// A story while it is played.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class SessionStory: @unchecked Sendable {
    static let slowMethod = "test.Pushes/Slow"
    static let pushMethods = ["test.Pushes/A", "test.Pushes/B", slowMethod]

    let world: World
    let clientHost: WorldHost
    let serverHost: WorldHost
    let settings: SessionSettings
    let record: SessionRecord
    let witness: SessionWitness
    var random: SimulationRandom
    /// Whether nothing new begins, and everything comes to its end.
    var isQuiet = false
    var isClientOver = false
    var isServerOver = false
    /// Whether the last programs have ended.
    var (hasClientEnded, hasServerEnded) = (false, false)
    /// Whether handlers of calls wait, so that they can be counted.
    var isCounting = false
    /// Whether nobody reads the messages of slow methods.
    var leavesUnread = false
    /// The call both ways of which nobody reads anything.
    var unreadCall: Int?
    /// The running sends and calls of users, by their numbers.
    var operations: [Int: Operation] = [:]
    private var operationCount = 0

    // The client.
    var runCount = 0
    var session: SessionClient?
    var running: Program<Void>?

    // The server.
    var server: SessionServer?
    /// The next thing for the server to do; nil to go on.
    var order: ServerOrder?
    /// The process to which the following belongs.
    var serverProcess = 1
    /// The server's ends of sessions that go on, with their numbers, the newest last.
    var ends: [(number: Int, end: SessionServerEnd)] = []
    var sessionNumbers: [String: Int] = [:]

    enum ServerOrder {
        /// Shut down within the grace period.
        case shutDown
        /// Shut down at once.
        case stop
    }

    struct Operation {
        let program: Program<Void>
        let isOnServer: Bool
    }

    init(in world: World) {
        self.world = world
        // Other numbers than the world's own generator has.
        random = SimulationRandom(seed: world.seed &+ 1 << 32)
        settings = SessionSettings(using: &random)
        (clientHost, serverHost) = (world.host("client"), world.host("server"))
        record = SessionRecord(world, settings)
        witness = SessionWitness(now: { [unowned world] in world.now }, fail: { [unowned world] in world.fail($0) })
    }

    var totals: SessionScenario.Totals {
        var totals = record.totals
        totals.count(witness.counts)
        totals.scenarios = 1
        return totals
    }

    func play() async throws {
        observe()
        world.faults = settings.faults
        for host in world.hosts { host.machine.conditions.bytesPerSecond = settings.bytesPerSecond }
        serverHost.serve { try await self.runServers() }
        clientHost.run { try await self.runClients() }
        for _ in 0..<settings.stepCount {
            try await step()
            try await Task.sleep(for: randomPause())
        }
        try await settle()
        record.verify()
        world.onTraffic = nil
    }

    private func observe() {
        world.onTraffic = { [witness] in witness.saw($0) }
        witness.isProcessed = { [record] in record.messages[$0]?.isFinished != false }
        witness.onMessage = { [unowned self] in check($0) }
    }

    /// Checks the time at which a message is written to a connection.
    private func check(_ message: SessionWitness.Message) {
        guard let number = message.number, let slack = settings.slack else { return }
        let sent = message.isRequest ? nil : record.messages[number]
        if let timeToLive = sent?.delivery.timeToLive, let acceptedAt = sent?.acceptedAt {
            // Bytes may wait in a connection, so only connections count that began after the time to live.
            let isInTime = message.openedAt <= acceptedAt + timeToLive + slack
            record.demand(isInTime, "message \(number) is sent after its time to live")
        }
        let begunAt = message.isRequest ? record.calls[number]?.startedAt : sent?.sentAt
        if let leftAt = message.leftAt, let begunAt, message.isRequest || sent?.stream.isPushes == true {
            record.demand(begunAt <= leftAt + slack, "\(number) is begun on a connection that the server leaves")
        }
    }

    /// Often short, so that much happens at the same time; sometimes long enough for a silent connection to be noticed.
    private func randomPause() -> Duration {
        let limits = [0, 5, 5, 30, 30, 100, below(4) == 0 ? 3_000 : 300]
        return .milliseconds(below((limits.randomElement(using: &random) ?? 0) + 1))
    }

    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// Runs a program of a user, which may be cancelled.
    func operate(onServer isOnServer: Bool = false, _ body: @escaping @Sendable () async throws -> Void) {
        operationCount += 1
        let number = operationCount
        let program = (isOnServer ? serverHost : clientHost).run {
            try await body()
            self.operations[number] = nil
        }
        operations[number] = Operation(program: program, isOnServer: isOnServer)
    }
}

extension SessionScenario.Totals {
    fileprivate mutating func count(_ counts: SessionWitness.Counts) {
        connections = counts.connections
        cutFrames = counts.cutFrames
        (resumes, newSessions) = (counts.resumes, counts.newSessions)
        (overtakenHellos, lateWelcomes) = (counts.overtakenHellos, counts.lateWelcomes)
        (replacedConnections, drainings) = (counts.replacedConnections, counts.drainings)
        sentAwayClients = counts.sentAwayClients
        (resentFrames, blanks) = (counts.resentFrames, counts.blanks)
        (acknowledgedRanges, grants, bytes) = (counts.acknowledgedRanges, counts.grants, counts.bytes)
    }
}
