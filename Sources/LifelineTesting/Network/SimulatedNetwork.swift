internal import LifelineCore

/// Hosts and the connections between them.
///
/// It behaves like TCP over IP, as far as the programs at both ends can tell. Packets are lost while a link is down,
/// and are sent again after growing pauses. A host that no longer knows a connection answers with a reset. If nothing
/// gets through, neither end is told.
package final class SimulatedNetwork {
    /// The simulation that moves its time.
    package let simulation: Simulation
    /// Its hosts, in the order in which they were added.
    package private(set) var hosts: [SimulatedHost] = []

    /// Makes a network without hosts.
    package init(simulation: Simulation) {
        self.simulation = simulation
    }

    /// Adds a host. The trace shows its name.
    package func addHost(_ name: String) -> SimulatedHost {
        let host = SimulatedHost(name: name, simulation: simulation)
        hosts.append(host)
        return host
    }

    /// The conditions of all links. The getter returns those of the first host.
    package var conditions: LinkConditions {
        get { hosts.first?.conditions ?? LinkConditions() }
        set { for host in hosts { host.conditions = newValue } }
    }
}

/// The conditions of a link, in either direction.
public struct LinkConditions: Sendable, Hashable {
    /// The time that a packet takes to pass. Default: 10 ms. A packet from one host to another passes two links.
    public var latency = Duration.milliseconds(10)
    /// The random part that is added to the latency. Default: none. The order is kept.
    public var jitter = Duration.zero
    /// The bytes of a connection that pass in a second, in each direction. Connections do not slow each other. Default:
    /// nil, without limit.
    public var bytesPerSecond: Int?
    /// Whether the link is a black hole: it seems to be up, but passes nothing on. Default: false.
    public var losesEverything = false

    /// Makes the conditions of a good link.
    public init() {}
}
