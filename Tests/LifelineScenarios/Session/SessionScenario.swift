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

    /// What happened, over one or many stories.
    package struct Totals: Sendable, Equatable {
        package var (scenarios, connections, cuts) = (0, 0, 0)
        /// Cuts with bytes of a frame on one side and the rest of it not.
        package var cutsWithinFrames = 0
        package var (resumes, lostSessions, expiredSessions, restarts) = (0, 0, 0, 0)
        /// Hellos that a newer one had overtaken, and connections on which no welcome came in time.
        package var (overtakenHellos, lateWelcomes) = (0, 0)
        package var (messages, requests, refusedRequests, cancelledRequests, timedOutRequests, parts) = (
            0, 0, 0, 0, 0, 0
        )
        package var (duplicates, expiredMessages, replacedMessages, refusedMessages, doubtfulMessages) = (0, 0, 0, 0, 0)
        /// Connections that a newer one replaced, and those that a client left as the server goes away; sessions that
        /// took too long to close.
        package var (replacedConnections, leftConnections, overdueClosings) = (0, 0, 0)
        /// Pushes that a server refused, and clients that it sent away, as its sessions kept as much as they may.
        package var (exhaustedPushes, sentAwayClients) = (0, 0)
        /// Frames that connections refused, as they were about to be gone.
        package var failedSends = 0
        package var (bytes, steps) = (0, 0)

        package init() {}
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
    /// Connections of which a side is left, the newest last; and which sides will see that it is gone.
    var links: [Link] = []
    var (unseenByClient, unseenByServer) = (Set<UInt64>(), Set<UInt64>())
    var linkCount: UInt64 = 0
    var lastNumber = 0
    /// Whether nothing new is begun.
    var isQuiet = false
    var isDraining = false
    let capacity: Int
    let largestFiller: Int
    let serverUnderstates: Bool
    /// What the server's sessions share.
    let budget: SimulatedSessionBudget?
    /// Until then a client does not come back to a server that has sent it away.
    var awayUntil = MonotonicTime(nanoseconds: 0)

    package init(seed: UInt64, isTracing: Bool = false) {
        self.seed = seed
        self.isTracing = isTracing
        var random = SimulationRandom(seed: seed)
        let clientOptions = SessionOptions.random(using: &random)
        var configuration = SimulatedSessionServer.Configuration()
        configuration.options = .random(using: &random)
        configuration.registry.keptDuration = .milliseconds(Int64.random(in: 300...15_000, using: &random))
        configuration.registry.maximumSessionCount = Int.random(in: 2...8, using: &random)
        configuration.registry.fullSpread = .milliseconds(500)
        configuration.registry.drainSpread = .milliseconds(300)
        budget = Int.random(in: 0..<3, using: &random) == 0 ? .random(using: &random) : nil
        configuration.budget = budget
        capacity = [60, 200, 1_000, 5_000].randomElement(using: &random) ?? 200
        // The largest are too long for some peers' frames.
        largestFiller = [10, 60, 210].randomElement(using: &random) ?? 60
        server = SimulatedSessionServer(configuration)
        client = End(.client, options: clientOptions)
        let failure = FirstFailure()
        self.failure = failure
        client.understatesReceived = Int.random(in: 0..<4, using: &random) == 0
        serverUnderstates = Int.random(in: 0..<4, using: &random) == 0
        clientRecord = SessionRecord(
            client,
            "client",
            peerUnderstates: serverUnderstates,
            peerFrameLimit: configuration.options.maximumFrameLength,
            fail: failure.note
        )
        self.random = random
        client.onActions = { [unowned self] in acted($0, clientRecord) }
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
        let largest = SessionPayload.messageOverhead + largestFiller + 8 + Self.overhead
        clientRecord.check(peer: server.configuration.options, largest: largest, now: now)
        for record in liveRecords { record.check(peer: client.options, largest: largest, now: now) }
        let registry = server.configuration.registry
        if server.registeredCount > registry.maximumSessionCount { failure.note("the server has too many sessions") }
        for record in liveRecords where isDraining && record.end.link != nil {
            switch record.end.machine.life.drain {
            case .none: failure.note("a client is not to be told that the server goes away")
            case .waiting(_, let deadline):
                // It waits for nothing but room on the connection, from the deadline on.
                if deadline < now, record.end.machine.life.canSend, record.end.link?.hasRoom(from: .server) == true {
                    failure.note("a client is not told that the server goes away")
                }
            case .said: break
            }
        }
        for link in links {
            for side in Link.Side.allCases where link.waitingByteCount(to: side) > capacity + largest + 400 {
                failure.note("\(link.waitingByteCount(to: side)) bytes wait on a connection")
            }
        }
        if let what = failure.what { note("FAILED: \(what)") }
    }

    /// What a message's name, and an entry of metadata, add to its content: see `payload(_:)`.
    static let overhead = 2 + 64 + 8

    private func verify() {
        clientRecord.verify(peers: serverRecords)
        for record in serverRecords { record.verify(peers: [clientRecord]) }
    }

    private func count() {
        for record in serverRecords + [clientRecord] {
            result.totals.messages += record.pushes.count
            result.totals.requests += record.requests.count
            result.totals.refusedRequests += record.refusedCount
            result.totals.failedSends += record.end.failedSendCount
            result.totals.duplicates += record.end.machine.inbound.duplicateCount
            for code in record.results.values {
                if code == .cancelled { result.totals.cancelledRequests += 1 }
                if code == .timedOut { result.totals.timedOutRequests += 1 }
                if code == .messageRefused { result.totals.refusedMessages += 1 }
            }
            for outcome in record.outcomes.values {
                switch outcome {
                case .expired: result.totals.expiredMessages += 1
                case .replaced: result.totals.replacedMessages += 1
                case .refused: result.totals.refusedMessages += 1
                case .inDoubt: result.totals.doubtfulMessages += 1
                default: break
                }
            }
        }
        result.totals.lostSessions = clientRecord.lossCount
    }
}

extension SessionScenario {
    /// What to say of a failure, with the command that shows what led to it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "session scenario \(seed) failed: \(what); replay: scripts/soak --session-scenario \(seed)"
    }
}

extension SessionScenario.Totals {
    package static func += (sum: inout Self, other: Self) {
        sum.scenarios += other.scenarios
        sum.connections += other.connections
        sum.cuts += other.cuts
        sum.cutsWithinFrames += other.cutsWithinFrames
        sum.resumes += other.resumes
        sum.lostSessions += other.lostSessions
        sum.expiredSessions += other.expiredSessions
        sum.restarts += other.restarts
        sum.overtakenHellos += other.overtakenHellos
        sum.lateWelcomes += other.lateWelcomes
        sum.messages += other.messages
        sum.requests += other.requests
        sum.refusedRequests += other.refusedRequests
        sum.cancelledRequests += other.cancelledRequests
        sum.timedOutRequests += other.timedOutRequests
        sum.parts += other.parts
        sum.duplicates += other.duplicates
        sum.expiredMessages += other.expiredMessages
        sum.replacedMessages += other.replacedMessages
        sum.refusedMessages += other.refusedMessages
        sum.doubtfulMessages += other.doubtfulMessages
        sum.replacedConnections += other.replacedConnections
        sum.leftConnections += other.leftConnections
        sum.overdueClosings += other.overdueClosings
        sum.exhaustedPushes += other.exhaustedPushes
        sum.sentAwayClients += other.sentAwayClients
        sum.failedSends += other.failedSends
        sum.bytes += other.bytes
        sum.steps += other.steps
    }
}

extension SimulatedSessionBudget {
    /// A small one: some sessions, and sometimes a single one, reach its limits.
    static func random(using random: inout SimulationRandom) -> SimulatedSessionBudget {
        var limit = SessionAllowance.unlimited
        limit.byteCount = Int.random(in: 2_000...12_000, using: &random)
        limit.handlerCount = Int.random(in: 1...6, using: &random)
        return SimulatedSessionBudget(limit: limit, pause: SessionScenario.budgetPause)
    }
}

extension SessionOptions {
    /// Small ones, so that every limit is met, and each end has its own.
    static func random(using random: inout SimulationRandom) -> SessionOptions {
        var options = SessionOptions()
        options.outboundLimit = SessionWindow(
            frameCount: Int.random(in: 2...24, using: &random),
            byteCount: Int.random(in: 1_000...20_000, using: &random)
        )
        options.inboundWindow = SessionWindow(
            frameCount: Int.random(in: 1...10, using: &random),
            byteCount: Int.random(in: 4_096...10_000, using: &random)
        )
        options.maximumRequestCount = Int.random(in: 1...8, using: &random)
        options.maximumRunningCount = Int.random(in: 1...6, using: &random)
        options.acknowledgementBatchSize = Int.random(in: 1...5, using: &random)
        options.welcomeTimeout = .milliseconds(Int64.random(in: 100...2_000, using: &random))
        options.maximumFrameLength = [260, 300, 4 << 20].randomElement(using: &random) ?? 4 << 20
        return options
    }
}
