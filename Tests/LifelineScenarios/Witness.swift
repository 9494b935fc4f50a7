internal import LifelineCore
package import LifelineTesting

/// Somebody who sees only what a client is told and what it does, and checks it against what has to hold.
///
/// It keeps the plainest account that there is of each promise, and shares no code with the machines.
package final class Witness {
    struct Send {
        let payload: [UInt8]
        let policy: SendPolicy
        let offeredAt: MonotonicTime
        var isAccepted = false
        var outcome: SimulatedClient.SendOutcome?
    }

    /// What one connection accepted, in order, and how much of it was delivered.
    struct Connection {
        let stream: SimulatedStream
        var accepted: [(number: UInt64, end: UInt64)] = []
        var deliveredCount = 0
    }

    let configuration: SimulatedClient.Configuration
    let simulation: Simulation
    /// The first thing that did not hold.
    package var failure: String?
    /// What has been seen to happen, so that it is known what scenarios reach.
    package var seen: Set<String> = []

    // Connecting.
    var state = ConnectionState.idle
    var transitionCount: UInt64 = 0
    var publishedCount: UInt64 = 0
    var isFinished = false
    /// What became of the messages of the connection that has ended last.
    var lastClosed: (accepted: Int, undelivered: Int)?
    var lastTransition: ConnectionTransition?
    var hasNetwork: Bool
    var attempts = 0
    var readySince: MonotonicTime?
    var lastEvent: SimulatedClientEvent?
    /// The network has changed under a connection.
    var isProbeDue = false

    // Sending.
    var sends: [Send] = []
    var lastAccepted: UInt64 = 0
    var connections: [UInt64: Connection] = [:]
    var attemptOfStream: [Int: UInt64] = [:]

    // Whether each side notices that the other is dead, and only then.
    var clientLife: LifeWitness
    var serverLife: LifeWitness

    package init(_ client: SimulatedClient) {
        configuration = client.configuration
        simulation = client.host.simulation
        hasNetwork = client.host.reportedStatus
        clientLife = LifeWitness(of: client.configuration.liveness, on: client.host, looksForSleep: true)
        serverLife = LifeWitness(of: client.server.configuration.liveness, on: client.server.host, looksForSleep: false)
    }

    var now: MonotonicTime { simulation.now }

    func fail(_ what: @autoclosure () -> String) {
        if failure == nil { failure = what() }
    }

    func see(_ what: @autoclosure () -> String) {
        // Only when somebody asks: it costs more than the rest.
        if simulation.isTracing { seen.insert(what()) }
    }
}
