internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// A random story that follows from a seed: a client and a server with sessions, over connections that die at any byte,
/// or come late, side by side. After every step it is checked what has to hold.
package final class SessionScenario {
    /// How it went.
    package struct Result: Sendable {
        /// The first thing that did not hold; nil when everything did.
        package var failure: String?
        package var totals = Totals()
        /// Empty without tracing.
        package var trace: [String] = []
        package var simulatedTime = Duration.zero
    }

    typealias Link = SimulatedSessionLink
    typealias End = SimulatedSessionEnd

    let seed: UInt64
    var random: SimulationRandom
    let isTracing: Bool
    var result = Result()
    var now = MonotonicTime(nanoseconds: 0)
    let client: End
    let server: SimulatedSessionServer
    let clientRecord: SessionRecord
    /// Those of all sessions that there were at the server, and those that go on.
    var serverRecords: [SessionRecord] = []
    var liveRecords: [SessionRecord] = []
    var witnesses: [SessionWitness] = []
    /// Connections of which a side is left, the newest last; and which sides will see that it is gone.
    var links: [Link] = []
    var (unseenByClient, unseenByServer) = (Set<UInt64>(), Set<UInt64>())
    var linkCount: UInt64 = 0
    var lastNumber = 0
    /// Whether nothing new is begun.
    var isQuiet = false
    var isDraining = false
    let sizes: Sizes
    /// The budget that the server's sessions share.
    let budget: SimulatedSessionBudget?
    /// Until then a client does not come back to a server that has sent it away.
    var awayUntil = MonotonicTime(nanoseconds: 0)

    package init(seed: UInt64, isTracing: Bool = false) {
        self.seed = seed
        self.isTracing = isTracing
        var random = SimulationRandom(seed: seed)
        let sizes = Sizes.random(using: &random)
        let clientOptions = SessionOptions.random(sizes, using: &random)
        var configuration = SimulatedSessionServer.Configuration()
        configuration.options = .random(sizes, using: &random)
        configuration.registry.keptDuration = .milliseconds(Int64.random(in: 300...15_000, using: &random))
        configuration.registry.maximumSessionCount = Int.random(in: 2...8, using: &random)
        configuration.registry.fullSpread = .milliseconds(500)
        configuration.registry.drainSpread = .milliseconds(300)
        budget = Int.random(in: 0..<3, using: &random) == 0 ? .random(sizes, using: &random) : nil
        configuration.budget = budget
        self.sizes = sizes
        server = SimulatedSessionServer(configuration)
        client = End(.client, options: clientOptions)
        let failure = FirstFailure()
        self.failure = failure
        clientRecord = SessionRecord(client, "client", peer: configuration.options, fail: failure.note)
        self.random = random
        watch(client, peer: configuration.options)
        client.onActions = { [unowned self] in acted($0, clientRecord) }
        clientRecord.numberOfPeersRequest = { [unowned self] serial in
            serverRecords.first { $0.session == clientRecord.session }?.numberBySerial[serial]
        }
        server.onSession = { [unowned self] end in began(end) }
        server.onResume = { [unowned self] in result.totals.resumes += 1 }
        server.onOvertaken = { [unowned self] in result.totals.overtakenHellos += 1 }
        server.onExpiry = { [unowned self] end in
            note("a session expires")
            if end.link != nil { failure.note("a session expires that has a connection") }
            result.totals.expiredSessions += 1
        }
        server.decisionTime = { [unowned self] in
            // Mostly at once, often as long as it takes for a client to come back.
            isQuiet || below(3) > 0 ? .zero : .milliseconds(below(200))
        }
    }

    /// Has a witness see the frames of an end.
    private func watch(_ end: End, peer: SessionOptions) {
        let witness = SessionWitness(peer: peer, fail: failure.note)
        witnesses.append(witness)
        end.onTraffic = { witness.saw($0) }
        end.offeredByteCount = sizes.offeredByteCount
    }

    /// The server has begun a session.
    private func began(_ end: End) {
        if isDraining { failure.note("a session begins at a server that goes away") }
        let name = "server \(serverRecords.count + 1)"
        let record = SessionRecord(end, name, peer: client.options, fail: failure.note)
        serverRecords.append(record)
        liveRecords.append(record)
        watch(end, peer: client.options)
        record.numberOfPeersRequest = { [unowned self] serial in clientRecord.numberBySerial[serial] }
        end.onActions = { [unowned self, unowned record] in acted($0, record) }
    }

    /// How long a client stays away that is sent away for want of what the sessions share: longer than for any other
    /// reason.
    static let budgetPause = Duration.milliseconds(600)

    let failure: FirstFailure

    /// The first thing that does not hold.
    final class FirstFailure {
        private(set) var what: String?

        func note(_ what: String) {
            if self.what == nil { self.what = what }
        }
    }

    /// Runs it. Once.
    package func run() -> Result {
        result.totals.scenarios = 1
        for _ in 0..<Int.random(in: 80...800, using: &random) where failure.what == nil {
            step()
            check()
        }
        if failure.what == nil { settle() }
        if failure.what == nil { verify() }
        count()
        result.failure = failure.what
        result.simulatedTime = now - MonotonicTime(nanoseconds: 0)
        // They know one another.
        for record in serverRecords { record.end.onActions = { _ in } }
        return result
    }

    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    func note(_ line: @autoclosure () -> String) {
        if isTracing { result.trace.append("\(now) \(line())") }
    }

    func check() {
        result.totals.steps += 1
        let largest = sizes.largestCost
        clientRecord.check(largest: largest, now: now)
        for record in liveRecords { record.check(largest: largest, now: now) }
        let registry = server.configuration.registry
        if server.registeredCount > registry.maximumSessionCount { failure.note("the server has too many sessions") }
        for record in liveRecords where isDraining && record.end.link != nil {
            switch record.end.machine.life.drain {
            case .none: failure.note("a client is not to be told that the server goes away")
            case .waiting(let drain):
                // It waits for nothing but room on the connection, from the deadline on.
                if drain.deadline < now, record.end.machine.life.canSend,
                    record.end.link?.hasRoom(from: .server) == true
                {
                    failure.note("a client is not told that the server goes away")
                }
            case .said: break
            }
        }
        for link in links {
            for side in Link.Side.allCases where link.waitingByteCount(to: side) > sizes.largestLinkByteCount {
                failure.note("\(link.waitingByteCount(to: side)) bytes wait on a connection")
            }
        }
        if let what = failure.what { note("FAILED: \(what)") }
    }

    private func verify() {
        clientRecord.verify(peers: serverRecords)
        for record in serverRecords { record.verify(peers: [clientRecord]) }
    }
}

extension SessionScenario {
    /// Returns the text of a failure, with the command that shows what led to it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "session scenario \(seed) failed: \(what); replay: scripts/soak --session-scenario \(seed)"
    }
}
