internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A story of durable messages while it is played.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class DurableStory: @unchecked Sendable {
    typealias Side = DurableRecord.Side

    let world: World
    let clientHost: WorldHost
    let serverHost: WorldHost
    let record: DurableRecord
    private let witness: SessionWitness
    var random: SimulationRandom
    /// Whether more is kept than memory has.
    let isLarge: Bool
    private let isSmall: Bool
    private let faults: Faults
    var isQuiet = false
    private var isOver = false
    /// Whether the last programs have ended.
    private var (hasClientEnded, hasServerEnded) = (false, false)
    /// The sends of the present processes.
    private var programs: [Program<Void>] = []

    private var made: (client: SessionClient, process: Int)?
    private var running: Program<Void>?
    private var ends: [SessionServerEnd] = []
    private var serverProcess = 0

    init(in world: World) {
        self.world = world
        var random = SimulationRandom(seed: world.seed &+ 1 << 32)
        (clientHost, serverHost) = (world.host("client"), world.host("server"))
        isSmall = Bool.random(using: &random)
        isLarge = Int.random(in: 0..<8, using: &random) == 0
        var faults = Faults()
        faults.latency = .milliseconds([0, 2, 20].randomElement(using: &random) ?? 2)
        func choose(_ seconds: [Double?]) -> Duration? {
            (seconds.randomElement(using: &random) ?? nil).map { .seconds($0) }
        }
        faults.cuts = choose([0.3, 1, 3, nil])
        faults.outages = choose([5, nil])
        faults.kills = choose([0.7, 2, 5, nil])
        faults.slowDisks = choose([3, 10, nil])
        faults.fullDisks = choose([5, 10, nil])
        faults.failedCommits = choose([0.3, 1, 3, nil])
        faults.dateJumps = choose([nil, nil, nil, 2])
        self.faults = faults
        self.random = random
        let stores = [clientHost, serverHost].map { WatchedStore($0.database([Int]())) }
        for store in stores { store.database.longestCommit = .milliseconds(30) }
        record = DurableRecord(world, stores, dateJumps: faults.dateJumps != nil)
        witness = SessionWitness(now: { [unowned world] in world.now }, fail: { [unowned world] in world.fail($0) })
    }

    var totals: DurableScenario.Totals {
        var totals = record.totals
        totals.connections = witness.counts.connections
        return totals
    }

    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    func play() async throws {
        world.onTraffic = { [witness] in witness.saw($0) }
        witness.onMessage = { [record] in record.wrote($0) }
        witness.isProcessed = { [record] in record.isProcessed($0) }
        world.faults = faults
        serverHost.serve { try await self.runServer() }
        clientHost.serve { try await self.runClients() }
        for _ in 0..<Int.random(in: 20...150, using: &random) {
            step()
            let limit = [0, 10, 40, below(8) == 0 ? 3_000 : 100].randomElement(using: &random) ?? 0
            try await Task.sleep(for: .milliseconds(below(limit + 1)))
        }
        try await settle()
        record.verify()
        world.onTraffic = nil
    }

    private func step() {
        switch below(20) {
        case 0..<6: push(from: .client)
        case 6..<11: push(from: .server)
        case 11..<17: call()
        case 17: programs.randomElement(using: &random)?.cancel()
        case 18: if below(4) == 0 { endSession() }
        default: if below(6) == 0 { endClient() }
        }
    }

    private func endSession() {
        guard let end = newestEnd else { return }
        world.note("the server ends a session")
        serverHost.run { await end.end(gracePeriod: .zero) }
    }

    private func endClient() {
        guard let client else { return }
        world.note("the client ends")
        if below(2) == 0 { running?.cancel() } else { clientHost.run { await client.close() } }
    }

    func operate(_ side: Side, _ body: @escaping @Sendable () async throws -> Void) {
        if programs.count > 60 { programs.removeFirst(30) }
        programs.append((side == .client ? clientHost : serverHost).run(body))
    }

    /// The present client; nil while there is none, or its store is not open.
    var client: SessionClient? {
        guard let made, made.process == clientHost.processCount, made.client.state != .idle else { return nil }
        return made.client
    }

    /// The end of the newest session, if there is a server.
    var newestEnd: SessionServerEnd? { serverProcess == serverHost.processCount ? ends.last : nil }

    // MARK: Programs

    private var limits: SessionLimits {
        var limits = SessionLimits()
        (limits.maximumKeptMessageCount, limits.maximumUnprocessedMessageCount) = isSmall ? (8, 8) : (1_000, 1_000)
        (limits.maximumKeptByteCount, limits.maximumUnprocessedByteCount) = (64 << 10, 64 << 10)
        limits.maximumUnreadByteCount = 64 << 10
        limits.maximumHandlerCount = isSmall ? 2 : 20
        return limits
    }

    private func shorten(_ connection: inout ConnectionConfiguration) {
        (connection.heartbeat.interval, connection.heartbeat.timeout) = (.milliseconds(500), .milliseconds(500))
        connection.heartbeat.allowedMisses = 2
    }

    private nonisolated(nonsending) func runServer() async throws {
        record.started(.server)
        (ends, serverProcess) = ([], serverHost.processCount)
        var configuration = SessionServerConfiguration()
        (configuration.limits, configuration.store) = (limits, record.stores[1])
        shorten(&configuration.server.connection)
        configuration.server.shutdownGracePeriod = .seconds(5)
        configuration.keptDuration = .milliseconds(1_500)
        configuration.whenOpened = { if !$1 { self.ends.append($0) } }
        configuration.whenEnded = { end in
            self.ends.removeAll { $0 === end }
            self.record.sessionEnded(.server)
        }
        configuration.whenInDoubt = { for message in $1 { self.record.expired(message, .server) } }
        try await withSessionServer(
            listeningOn: Endpoint("tcp://0.0.0.0:7000"),
            configuration: configuration,
            services: [DurableStoryService(story: self)],
            logger: world.logger
        ) { _ in
            while !isOver { try await Task.sleep(for: .milliseconds(100)) }
        }
        hasServerEnded = true
    }

    private nonisolated(nonsending) func runClients() async throws {
        record.started(.client)
        while !isOver { try await runClient() }
        hasClientEnded = true
    }

    private nonisolated(nonsending) func runClient() async throws {
        record.beganAnew(.client)
        var configuration = SessionClientConfiguration()
        (configuration.limits, configuration.store) = (limits, record.stores[0])
        configuration.client.backoff.maximumAttempts = nil
        configuration.client.backoff.initialDelay = .milliseconds(20)
        configuration.client.backoff.cap = .milliseconds(500)
        configuration.client.connection.connectTimeout = .seconds(1)
        shorten(&configuration.client.connection)
        let client = SessionClient(
            to: try Endpoint("tcp://server:7000"),
            configuration: configuration,
            logger: world.logger
        )
        var readers = DurableRecord.pushMethods.map { method in
            let pushes = client.pushes(method, of: RawMessage.self)
            return clientHost.run { await self.read(pushes, of: method) }
        }
        readers += [DurableRecord.callMethod, DurableRecord.markedCallMethod].map { method in
            let replies = client.lateReplies(to: method, of: RawMessage.self)
            return clientHost.run { await self.read(replies) }
        }
        let events = clientHost.run {
            for await event in client.sessionEvents {
                switch event.kind {
                // Of messages that are stored, only expired ones are in doubt.
                case .expired(let messages), .lost(let messages), .refused(let messages), .ended(_, let messages):
                    for message in messages { self.record.expired(message, .client) }
                case .opened: break
                }
            }
        }
        let running = clientHost.run { try await client.run() }
        (made, self.running) = ((client, clientHost.processCount), running)
        do {
            try await running.value
        } catch is CancellationError {
            // A step has ended it.
        } catch is StoreError {
            // The disk could not be read.
        }
        made = nil
        try await events.value
        for reader in readers { try await reader.value }
        if !isQuiet { try await Task.sleep(for: .milliseconds(below(100))) }
    }

    // MARK: The end

    private nonisolated(nonsending) func settle() async throws {
        world.note("all is well from now on")
        isQuiet = true
        world.faults = Faults()
        try await Task.sleep(for: .seconds(9))
        try await wait("every accepted message is processed, and every reply has come") { record.unfinished() == nil }
        // A client that closes at once may leave its last replies in the store of the server until it comes back.
        try await Task.sleep(for: .seconds(1))
        isOver = true
        clientHost.run { await self.client?.close() }
        try await wait("the client and the server end") { hasClientEnded && hasServerEnded }
        // The programs of users learn of it, too.
        try await Task.sleep(for: .seconds(3))
        let (client, server) = (record.stores[0], record.stores[1])
        let contents = [try await client.content(for: nil), try await server.content(for: client.id)]
        for content in contents { record.demand(content.byteCount == 0, "groups are left in a store") }
    }

    private nonisolated(nonsending) func wait(_ text: String, _ condition: () -> Bool) async throws {
        let deadline = world.now + .seconds(120)
        while !condition() {
            if world.now >= deadline {
                throw WorldFailure("This did not come to hold: \(text), \(record.unfinished() ?? "")")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}
