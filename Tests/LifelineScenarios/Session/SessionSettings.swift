internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// The sizes, limits and faults of a story.
struct SessionSettings {
    /// Whether windows have room for all the credit of some streams, so that credit is used up. Otherwise they are
    /// small, so that every other limit is met.
    let isRoomy: Bool
    let largestFiller: Int
    var client = SessionClientConfiguration()
    var server = SessionServerConfiguration()
    /// Whether the server's sessions share so little that they meet that limit.
    let hasBudget: Bool
    var faults = Faults()
    let bytesPerSecond: Int?
    /// The number of random steps.
    let stepCount: Int
    /// Whether the server decides about connections at once.
    let decidesAtOnce: Bool

    init(using random: inout SimulationRandom) {
        isRoomy = Int.random(in: 0..<4, using: &random) == 0
        // The largest are too long for some peers.
        let fillers = isRoomy ? [3_000, 12_000] : [10, 60, 210, 5_000]
        largestFiller = fillers.randomElement(using: &random) ?? 60
        hasBudget = Int.random(in: 0..<3, using: &random) == 0
        bytesPerSecond = [nil, nil, nil, 50_000, 500_000].randomElement(using: &random) ?? nil
        stepCount = Int.random(in: 40...200, using: &random)
        decidesAtOnce = Bool.random(using: &random)
        configureClient(&random)
        configureServer(&random)
        chooseFaults(&random)
    }

    /// The highest cost of a message: beside the filler it has the head of a note, a number, a name or metadata.
    var largestCost: Int { largestFiller + 150 + SessionSize.frameOverhead }

    /// How long after its deadline a call ends at the latest: a few steps. Nil if machines stand still.
    var slack: Duration? { faults.pauses == nil ? .milliseconds(1) : nil }

    private mutating func configureClient(_ random: inout SimulationRandom) {
        client.limits = randomLimits(&random)
        client.client.connection.maximumFrameLength = randomFrameLength(&random)
        client.closeTimeout = .seconds(30)
        client.client.backoff.maximumAttempts = nil
        client.client.backoff.initialDelay = .milliseconds([5, 50, 200].randomElement(using: &random) ?? 50)
        client.client.backoff.cap = .milliseconds(500)
        client.client.connection.connectTimeout = .seconds(1)
        setHeartbeat(of: &client.client.connection, &random)
    }

    private mutating func configureServer(_ random: inout SimulationRandom) {
        server.limits = randomLimits(&random)
        server.server.connection.maximumFrameLength = randomFrameLength(&random)
        setHeartbeat(of: &server.server.connection, &random)
        server.server.shutdownGracePeriod = .milliseconds(Int.random(in: 0...3_000, using: &random))
        server.keptDuration = .milliseconds(Int.random(in: 300...15_000, using: &random))
        server.maximumSessionCount = Int.random(in: 2...8, using: &random)
        server.drainSpread = .milliseconds(Int.random(in: 0...600, using: &random))
        guard hasBudget else { return }
        // Room for three messages and the names of methods, so that each message can come.
        server.maximumKeptByteCount = Int.random(in: 2_000...12_000, using: &random) + 3 * largestCost + 4_096
        server.maximumHandlerCount = Int.random(in: 1...6, using: &random)
    }

    /// Short ones, because stories have many silent cuts.
    private func setHeartbeat(of connection: inout ConnectionConfiguration, _ random: inout SimulationRandom) {
        connection.heartbeat.interval = .milliseconds(Int.random(in: 300...2_000, using: &random))
        connection.heartbeat.timeout = .milliseconds(Int.random(in: 300...1_000, using: &random))
        connection.heartbeat.allowedMisses = 2
    }

    private func randomFrameLength(_ random: inout SimulationRandom) -> Int {
        (isRoomy ? [20_000, 4 << 20] : [4_096, 4_500, 4 << 20]).randomElement(using: &random) ?? 4 << 20
    }

    /// Mostly small ones, so that every limit is met.
    private func randomLimits(_ random: inout SimulationRandom) -> SessionLimits {
        var limits = SessionLimits()
        if isRoomy {
            // Two streams that nobody reads have 70,000 bytes each, and a frame; others have to go beside them.
            limits.maximumKeptMessageCount = Int.random(in: 1_200...2_000, using: &random)
            limits.maximumKeptByteCount = Int.random(in: 200_000...400_000, using: &random)
            limits.maximumUnprocessedMessageCount = Int.random(in: 1_200...2_000, using: &random)
            limits.maximumUnprocessedByteCount = Int.random(in: 200_000...400_000, using: &random)
        } else {
            limits.maximumKeptMessageCount = Int.random(in: 1...24, using: &random)
            limits.maximumKeptByteCount = Int.random(in: 1_000...20_000, using: &random)
            limits.maximumUnprocessedMessageCount = Int.random(in: 1...10, using: &random)
            limits.maximumUnprocessedByteCount = Int.random(in: 4_096...10_000, using: &random)
        }
        limits.maximumUnreadByteCount = Int.random(in: SessionTerms.smallestCredit...70_000, using: &random)
        limits.maximumRequestCount = Int.random(in: 1...8, using: &random)
        limits.maximumHandlerCount = Int.random(in: 1...6, using: &random)
        return limits
    }

    /// A quarter of the stories has no faults, because a kill or a cut would free what hangs.
    private mutating func chooseFaults(_ random: inout SimulationRandom) {
        faults.latency = .milliseconds([0, 2, 20, 100].randomElement(using: &random) ?? 2)
        faults.jitter = .milliseconds([0, 0, 5, 30].randomElement(using: &random) ?? 0)
        guard Int.random(in: 0..<4, using: &random) > 0 else { return }
        func choose(_ seconds: [Double?]) -> Duration? {
            (seconds.randomElement(using: &random) ?? nil).map { .seconds($0) }
        }
        faults.cuts = choose([0.2, 0.5, 1, 3, nil])
        faults.outages = choose([nil, 4, 10])
        faults.kills = choose([nil, nil, 8, 20])
        faults.addressChanges = choose([nil, nil, 10])
        faults.pauses = choose([nil, nil, nil, 10])
        faults.dateJumps = choose([nil, nil, 10])
    }
}
