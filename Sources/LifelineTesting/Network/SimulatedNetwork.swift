internal import LifelineCore

/// Hosts and the connections between them.
///
/// It behaves as TCP over IP does, as far as the programs at both ends can tell. What is on its way when a link is down
/// is lost and sent again, later and later; who is not there any more answers with a reset; and when nothing gets
/// through, nobody is told.
package final class SimulatedNetwork {
    /// The simulation that moves its time.
    package let simulation: Simulation
    /// Its hosts, in the order in which they were added.
    package private(set) var hosts: [SimulatedHost] = []

    /// Makes a network without hosts.
    package init(simulation: Simulation) {
        self.simulation = simulation
    }

    /// Adds a host. Its name stands in the trace.
    package func addHost(_ name: String) -> SimulatedHost {
        let host = SimulatedHost(name: name, simulation: simulation)
        hosts.append(host)
        return host
    }

    /// The conditions of every host's link, for what they have in common. Reading gives those of the first one.
    package var conditions: LinkConditions {
        get { hosts.first?.conditions ?? LinkConditions() }
        set { for host in hosts { host.conditions = newValue } }
    }
}

/// The conditions of a link, in either direction.
public struct LinkConditions: Sendable, Hashable {
    /// How long everything takes to pass. Default: 10 ms. A packet from one host to another passes two links.
    public var latency = Duration.milliseconds(10)
    /// How much longer it may take, at random. Default: none. The order is kept.
    public var jitter = Duration.zero
    /// How many bytes of a connection pass in a second, in each direction. Connections do not slow each other. Default:
    /// nil, without limit.
    public var bytesPerSecond: Int?
    /// Whether the link passes nothing on although it seems to be up: a black hole. Default: false.
    public var losesEverything = false

    /// Makes the conditions of a good link.
    public init() {}
}
