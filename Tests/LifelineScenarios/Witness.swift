internal import Lifeline
internal import LifelineCore
internal import LifelineTesting

/// Compares the events of a client's user with those of the network and the server, and checks the client's guarantees.
///
/// It has the simplest possible model of each guarantee, and shares no code with the machines.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class Witness: @unchecked Sendable {
    /// The time in which the user's tasks react: some steps of up to 20 µs each.
    static let slack = Duration.milliseconds(1)

    let user: ClientUser
    let server: SimulatedServer
    let hasHeartbeat: Bool
    /// The first violation, if any.
    private(set) var failure: String?
    /// The names of the steps and events that occurred, to know what scenarios reach. Empty without tracing.
    private(set) var seen: Set<String> = []
    var now = MonotonicTime(nanoseconds: 0)
    var naps = Naps()

    // Connecting.
    /// The client's state, and the time of the last change.
    var state = ConnectionState.idle
    var stateSince = MonotonicTime(nanoseconds: 0)
    /// The last time at which the client was seen in another state than `ready`.
    var lastUnready = MonotonicTime(nanoseconds: 0)
    /// The last step that was reported to the user.
    var lastEvent: ClientEvent?
    /// The time since which the client's state differs from that of the last reported step.
    var behindSince: MonotonicTime?
    /// The reports about the network to programs on the client's host, the newest last.
    var networkReports: [(time: MonotonicTime, isUp: Bool)]
    var attempts = 0
    var attemptCount: UInt64 = 0
    var readySince = MonotonicTime(nanoseconds: 0)
    var reconnections: [MonotonicTime] = []
    var firstEndRequest: MonotonicTime?
    /// The time at which the network changed under an open connection, until the client sends a ping.
    var probeDueSince: MonotonicTime?

    // Sending.
    var offers = Offers()
    /// The client's connections, in the order in which they began.
    var connections: [WatchedConnection] = []
    /// The connection of the newest step to `ready`.
    var standing: WatchedConnection?
    /// The counts that ended connections have reported.
    var acceptedCounts: [(id: UInt64, count: Int)] = []

    // Check that each side gives the other up when that is dead, and only then.
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
        // Only with tracing, because this costs more than the rest.
        if machine.simulation.isTracing { seen.insert(what()) }
    }

    /// Returns the time for which the client's machine has been awake since `time`.
    func awake(since time: MonotonicTime) -> Duration { naps.awake(from: time, to: now) }

    func isOver(_ bound: Duration, since time: MonotonicTime) -> Bool {
        now - time > bound && awake(since: time) > bound
    }

    /// Checks the guarantees after a step.
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

/// The times at which a machine has slept.
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
