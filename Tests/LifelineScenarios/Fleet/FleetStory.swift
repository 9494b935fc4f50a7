import Lifeline
import LifelineFleet
import LifelineProtos
public import LifelineTesting
import NIOConcurrencyHelpers
import SampleServices

/// A fleet under faults: three servers, their shared store, and five clients behind a load balancer. The programs are
/// the real ones; machines, links and processes fail.
///
/// The guarantees: A client gets the messages of its group in order and once, and is told of missing ones. A message
/// has one position in the group. A call is handled at most once, and exactly once if it was answered. After the faults
/// have ended, every client gets new messages.
public enum FleetStory {
    /// The counts of a story.
    public struct Totals: Sendable, CustomStringConvertible {
        public var pushes = 0
        public var deliveries = 0
        public var calls = 0
        public var gaps = 0
        public var lostSessions = 0

        public init() {}

        public static func += (total: inout Totals, other: Totals) {
            total.pushes += other.pushes
            total.deliveries += other.deliveries
            total.calls += other.calls
            total.gaps += other.gaps
            total.lostSessions += other.lostSessions
        }

        public var description: String {
            "\(pushes) pushes, \(deliveries) deliveries, \(gaps) gaps told, \(calls) calls, "
                + "\(lostSessions) sessions lost and told"
        }
    }

    private static let clientCount = 5
    private static let group = "all"
    private static let lastWords = "the last words"

    /// Tells a story in a world.
    ///
    /// - Parameter report: gets the counts if everything held.
    public static func tell(in world: World, report: @escaping @Sendable (Totals) -> Void = { _ in }) async throws {
        let store = SimulatedFleetStore(on: world.host("store"))
        let servers = (1...3).map { world.host("server\($0)") }
        let witness = FleetWitness(world)
        for server in servers { serve(on: server, store, witness, in: world) }
        world.alias("fleet", of: servers)
        world.faults = .harsh
        for number in 1...clientCount {
            let host = world.host("client\(number)")
            host.run { try await runClient(host.name, witness, in: world) }
        }
        for number in 1...150 {
            try await Task.sleep(for: .milliseconds(200))
            push("\(number)", at: servers[number % 3], witness)
        }
        world.faults = Faults()
        // Clients wait for up to half a minute before they try again.
        for _ in 1...20 where !witness.haveAllHeard(lastWords, clientCount) {
            try await Task.sleep(for: .seconds(15))
            for server in servers { push(lastWords, at: server, witness) }
        }
        try await world.until("everybody hears the last words") { witness.haveAllHeard(lastWords, clientCount) }
        report(witness.totals)
    }

    private static func serve(
        on host: WorldHost,
        _ store: SimulatedFleetStore,
        _ witness: FleetWitness,
        in world: World
    ) {
        host.serve {
            var configuration = FleetConfiguration()
            configuration.automaticGroups = { _ in [group] }
            let fleet = Fleet(engine: store.engine(), configuration: configuration, logger: world.logger)
            witness.started(fleet, on: host.name)
            try await withSessionServer(
                listeningOn: Endpoint("tcp://0.0.0.0:7000"),
                services: [fleet, Echoes(witness: witness)],
                logger: world.logger
            ) {
                try await $0.waitUntilShutDown()
            }
        }
    }

    private static func push(_ text: String, at host: WorldHost, _ witness: FleetWitness) {
        host.run {
            // A failed push may have been accepted.
            do { try await witness.fleet(on: host.name)?.push(Pushes.news, .with { $0.text = text }, to: group) } catch
            {}
            witness.pushed()
        }
    }

    private static func runClient(_ name: String, _ witness: FleetWitness, in world: World) async throws {
        var configuration = SessionClientConfiguration()
        configuration.name = name
        configuration.client.backoff.maximumAttempts = nil
        try await withSessionClient(
            to: Endpoint("tcp://fleet:7000"),
            configuration: configuration,
            logger: world.logger
        ) { session in
            async let calls: Void = call(session, as: name, witness)
            for try await push in session.pushes(Pushes.news.name, of: News.self).withMetadata {
                guard let mark = push.group else { continue }
                witness.received(push.message.text, mark, by: name, lossCount: session.lossCount)
            }
            try await calls
        }
    }

    private static func call(_ session: SessionClient, as name: String, _ witness: FleetWitness) async throws {
        for number in 1... as PartialRangeFrom<UInt64> {
            try await Task.sleep(for: .milliseconds(500))
            do {
                let answer = try await session.call(
                    Echoes.method,
                    Question.with {
                        $0.number = number
                        $0.text = name
                    },
                    returning: Answer.self,
                    timeout: nil
                )
                witness.answered(answer.number, to: name, asked: number)
            } catch {
                // The call was not handled, or the outcome is unknown. It is not repeated.
            }
        }
    }
}

private typealias Pushes = Sample_Room_V1_RoomPushes
private typealias News = Sample_Room_V1_NewsItem
private typealias Question = Sample_Room_V1_EchoRequest
private typealias Answer = Sample_Room_V1_EchoReply

private struct Echoes: SessionService {
    static let method = "story.Echoes/Echo"
    let witness: FleetWitness

    var methods: [SessionMethod] {
        [
            .unary(Self.method) { (question: Question, _) async throws -> Answer in
                witness.handled(question.number, from: question.text)
                // Lets other calls begin meanwhile.
                try await Task.sleep(for: .milliseconds(20))
                return .with { $0.number = question.number }
            }
        ]
    }
}

extension SessionClient {
    /// The number of lost sessions so far.
    fileprivate var lossCount: Int {
        sessionHistory.count { if case .lost = $0.kind { true } else { false } }
    }
}

/// Checks the events of a story, and makes it fail at the first violation.
private final class FleetWitness: Sendable {
    private struct State {
        var fleets: [String: Fleet] = [:]
        /// The last message of each client, and the number of sessions that it had lost by then.
        var newest: [String: (text: String, mark: GroupMark, lossCount: Int)] = [:]
        /// The texts at the positions of the group.
        var texts: [GroupPosition: String] = [:]
        var handled: [String: Set<UInt64>] = [:]
        var totals = FleetStory.Totals()
    }

    private let world: World
    private let state = NIOLockedValueBox(State())

    init(_ world: World) { self.world = world }

    var totals: FleetStory.Totals {
        state.withLockedValue { state in
            state.totals.lostSessions = state.newest.values.reduce(0) { $0 + $1.lossCount }
            return state.totals
        }
    }

    func started(_ fleet: Fleet, on host: String) { state.withLockedValue { $0.fleets[host] = fleet } }

    func fleet(on host: String) -> Fleet? { state.withLockedValue { $0.fleets[host] } }

    func pushed() { state.withLockedValue { $0.totals.pushes += 1 } }

    func haveAllHeard(_ text: String, _ count: Int) -> Bool {
        state.withLockedValue { state in
            state.newest.count == count && state.newest.values.allSatisfy { $0.text == text }
        }
    }

    func received(_ text: String, _ mark: GroupMark, by client: String, lossCount: Int) {
        world.note("got \(text) at \(mark.position)\(mark.followsGap ? ", behind a gap" : "")")
        let failure: String? = state.withLockedValue { state in
            let last = state.newest.updateValue((text, mark, lossCount), forKey: client)
            let known = state.texts.updateValue(text, forKey: mark.position)
            state.totals.deliveries += 1
            if mark.followsGap { state.totals.gaps += 1 }
            if let known, known != text { return "\(mark.position) is \(known) and \(text)" }
            // A new session begins with the next pushed message.
            guard let last, last.lossCount == lossCount, last.mark.position.epoch == mark.position.epoch else {
                return nil
            }
            let (before, now) = (last.mark.position.offset, mark.position.offset)
            if now <= before { return "\(client) got \(mark.position) behind \(last.mark.position)" }
            if now != before + 1, !mark.followsGap { return "\(client) misses what is between \(before) and \(now)" }
            return nil
        }
        if let failure { world.fail(failure) }
    }

    func handled(_ number: UInt64, from client: String) {
        let isFirst = state.withLockedValue { $0.handled[client, default: []].insert(number).inserted }
        if !isFirst { world.fail("The call \(number) of \(client) was handled twice.") }
    }

    func answered(_ number: UInt64, to client: String, asked: UInt64) {
        let wasHandled = state.withLockedValue { state in
            state.totals.calls += 1
            return state.handled[client]?.contains(asked) == true
        }
        if number != asked || !wasHandled { world.fail("\(client) asked \(asked), and was answered \(number).") }
    }
}
