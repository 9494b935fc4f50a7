internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// Sees what the user of a client is told and what the network and the server see of it, and checks it against what has
/// to hold.
///
/// It keeps the plainest account that there is of each promise, and shares no code with the machines.
///
/// Unchecked, as all that belongs to a world: only the world's thread uses it.
final class Witness: @unchecked Sendable {
    /// What the user's tasks need to learn of something, or to do it: some steps of up to 20 µs each.
    static let slack = Duration.milliseconds(1)

    let user: ClientUser
    let server: SimulatedServer
    let hasHeartbeat: Bool
    /// The first thing that did not hold.
    private(set) var failure: String?
    /// What has been seen to happen, so that it is known what scenarios reach. Empty without tracing.
    private(set) var seen: Set<String> = []
    var now = MonotonicTime(nanoseconds: 0)
    var naps = Naps()

    // Connecting.
    /// The client's state, and since when.
    var state = ConnectionState.idle
    var stateSince = MonotonicTime(nanoseconds: 0)
    /// When the client was last seen in another state than `ready`.
    var lastUnready = MonotonicTime(nanoseconds: 0)
    /// The last step that the user was told of.
    var lastEvent: ClientEvent?
    /// Since when the client has had another state than that one.
    var behindSince: MonotonicTime?
    /// What programs on the client's host were told of the network, the newest last.
    var networkReports: [(time: MonotonicTime, isUp: Bool)]
    var attempts = 0
    var attemptCount: UInt64 = 0
    var readySince = MonotonicTime(nanoseconds: 0)
    var reconnections: [MonotonicTime] = []
    var firstEndRequest: MonotonicTime?
    /// The network has changed under a connection that stands, and the server was not asked since.
    var probeDueSince: MonotonicTime?

    // Sending.
    var offers = Offers()
    /// Those of the client, in the order in which they began.
    var connections: [WatchedConnection] = []
    /// The one that the newest step to `ready` told of.
    var standing: WatchedConnection?
    /// What the ends of connections said of them.
    var acceptedCounts: [(id: UInt64, count: Int)] = []

    // Whether each side notices that the other is dead, and only then.
    var clientLife: LifeWitness
    var serverLife: LifeWitness

    init(_ user: ClientUser, _ server: SimulatedServer) {
        (self.user, self.server) = (user, server)
        let connection = user.configuration.client.connection
        let liveness = LivenessOptions(
            heartbeat: user.configuration.asks ? connection.heartbeat : nil,
            idleTimeout: connection.idleTimeout,
            writeTimeout: connection.writeTimeout,
            unansweredByteLimit: connection.unansweredByteLimit
        )
        hasHeartbeat = user.configuration.asks
        let machine = user.host.machine
        networkReports = [(MonotonicTime(nanoseconds: 0), machine.reportedStatus)]
        clientLife = LifeWitness(of: liveness, on: machine, looksForSleep: true, slack: Witness.slack)
        serverLife = LifeWitness(of: server.configuration.liveness, on: server.host, looksForSleep: false)
        user.witness = self
        machine.observeStatus { [weak self] in self?.networkReported(isUp: $0) }
        server.onMessage = { [weak self] in self?.delivered($1, over: $0) }
        server.onClose = { [weak self] stream, failure in
            guard let self else { return }
            serverLife.closed(stream, for: failure, at: server.host.simulation.now, self)
        }
    }

    var configuration: ClientConfiguration { user.configuration.client }
    var machine: SimulatedHost { user.machine }

    func fail(_ what: @autoclosure () -> String) {
        if failure == nil { failure = what() }
    }

    func see(_ what: @autoclosure () -> String) {
        // Only when somebody asks: it costs more than the rest.
        if machine.simulation.isTracing { seen.insert(what()) }
    }

    /// How long the client's machine has been awake since a time.
    func awake(since time: MonotonicTime) -> Duration { naps.awake(from: time, to: now) }

    func isOver(_ bound: Duration, since time: MonotonicTime) -> Bool {
        now - time > bound && awake(since: time) > bound
    }

    /// What has to hold after every step.
    func check() {
        if failure != nil { return }
        now = machine.simulation.now
        naps.look(at: machine)
        lookAtConnections()
        lookAtState()
        if machine.hasBeenAwake {
            checkWaiting()
            checkSends()
        }
        checkLife()
    }
}

/// When a machine has slept.
struct Naps {
    private var naps: [(start: MonotonicTime, end: MonotonicTime)] = []

    mutating func look(at host: SimulatedHost) {
        let (start, end) = (host.lastSleepTime, host.lastWakeTime)
        if end.nanoseconds == 0 { return }
        if naps.last?.start == start { naps.removeLast() }
        naps.append((start, end))
    }

    func awake(from start: MonotonicTime, to end: MonotonicTime) -> Duration {
        var asleep = Duration.zero
        for nap in naps.reversed() {
            if nap.end <= start { break }
            let overlap = min(nap.end, end) - max(nap.start, start)
            if overlap > .zero { asleep += overlap }
        }
        return end - start - asleep
    }
}
