internal import LifelineCore
internal import LifelineTesting

/// A random story that follows from a seed: a client, a server, and what happens to them and to the network between
/// them. After every step it is checked what has to hold.
package final class Scenario {
    /// How it went.
    package struct Result {
        /// The first thing that did not hold; nil when everything did.
        package let failure: String?
        package let eventCount: Int
        package let simulatedTime: Duration
        /// Empty without tracing.
        package let trace: [String]
        /// What happened in it; empty without tracing.
        package let seen: Set<String>
    }

    let seed: UInt64
    let simulation: Simulation
    let network: SimulatedNetwork
    let server: SimulatedServer
    let client: SimulatedClient
    let witness: Witness
    var random: SimulationRandom
    private var eventCount = 0
    private var eventsAtThisTime = 0

    /// Prepares it. The trace costs about as much time as the rest.
    package init(seed: UInt64, isTracing: Bool) {
        self.seed = seed
        random = SimulationRandom(seed: seed)
        simulation = Simulation(seed: random.next())
        simulation.isTracing = isTracing
        network = SimulatedNetwork(simulation: simulation)
        let (clientHost, serverHost) = (network.addHost("client"), network.addHost("server"))
        network.conditions = .random(using: &random)
        server = SimulatedServer(on: serverHost, configuration: .random(using: &random))
        let configuration = SimulatedClient.Configuration.random(using: &random)
        if Int.random(in: 0..<8, using: &random) == 0 {
            clientHost.setLink(up: false)
            simulation.run(for: .seconds(1))
        }
        client = SimulatedClient(on: clientHost, connectingTo: server, configuration: configuration)
        client.reportsLate = Bool.random(using: &random)
        witness = Witness(client)
        client.observer = witness
        server.onMessage = { [witness] stream, message in witness.delivered(message, over: stream) }
        server.onClose = { [witness] stream, failure in witness.serverClosed(stream, for: failure) }
    }

    /// Runs it. Once.
    package func run() -> Result {
        switch Int.random(in: 0..<50, using: &random) {
        case 0: client.close()
        case 1: client.cancel()
        default: break
        }
        client.start()
        witness.check(client)
        for _ in 0..<Int.random(in: 5...40, using: &random) {
            if witness.failure != nil { break }
            disturb()
            witness.check(client)
            // Often short, so that things meet; sometimes long enough for everything to time out.
            let limit: Duration =
                [.milliseconds(50), .seconds(1), .seconds(10), .seconds(60)]
                .randomElement(using: &random) ?? .zero
            run(for: .milliseconds(Int64.random(in: 0...limit.milliseconds, using: &random)))
        }
        if witness.failure == nil { recover() }
        let result = Result(
            failure: witness.failure,
            eventCount: eventCount,
            simulatedTime: simulation.now - MonotonicTime(nanoseconds: 0),
            trace: simulation.trace,
            seen: witness.seen
        )
        simulation.cancelAllEvents()
        server.onMessage = nil
        server.onClose = nil
        return result
    }

    /// Runs the events of so much time, until something does not hold.
    func run(for duration: Duration) {
        let end = simulation.now + duration
        while witness.failure == nil, let next = simulation.nextEventTime, next <= end {
            eventsAtThisTime = next == simulation.now ? eventsAtThisTime + 1 : 0
            simulation.runNextEvent()
            eventCount += 1
            // Far more than in any scenario: something goes round in circles.
            if eventsAtThisTime > 5_000 { return witness.fail("time stands still") }
            if eventCount > 500_000 { return witness.fail("events without end") }
            witness.check(client)
        }
        if witness.failure == nil { simulation.run(until: end) }
    }

    /// Everything is well from now on, for long enough that the client is ready again, or has said why it is not.
    private func recover() {
        simulation.note("all is well from now on")
        for host in network.hosts {
            // On a slow link, full buffers alone can outlast a short heartbeat.
            host.conditions = LinkConditions()
            host.setLink(up: true)
        }
        if !server.isRunning { server.restart() }
        server.behavior = .accepting
        server.cancelCuts()
        witness.check(client)
        for host in network.hosts where host.isAsleep { run(for: host.lastWakeTime - simulation.now) }
        client.reads = true
        witness.check(client)
        client.send([1], policy: .drop(after: .seconds(1)))
        // Without heartbeat it takes TCP's 15 retransmissions, about 15 minutes, to notice that the peer is gone, and
        // up to 15 probes of 2 minutes where the peer had no room.
        run(for: client.configuration.heartbeat == nil ? .seconds(3_000) : .seconds(200))
        witness.checkRecovery(client)
        if witness.state == .gaveUp {
            client.reconnect()
            run(for: .seconds(100))
            if witness.state != .ready { witness.fail("\(witness.state) after it was asked to reconnect") }
        }
        client.send([2])
        run(for: .seconds(200))
        witness.checkEnd(client)
    }
}

extension Scenario {
    /// What to say of a failure, with the command that shows what led to it.
    package static func failureMessage(_ seed: UInt64, _ what: String) -> String {
        "scenario \(seed) failed: \(what); replay: scripts/soak --scenario \(seed)"
    }
}

extension Duration {
    var milliseconds: Int64 { saturatedNanoseconds / 1_000_000 }
}
