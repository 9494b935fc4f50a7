import LifelineTesting

/// A client that is connected to a server, at the beginning of each test.
class ConnectedPair {
    let simulation = Simulation(seed: 1)
    let server: SimulatedServer
    let client: SimulatedClient

    init() {
        let network = SimulatedNetwork(simulation: simulation)
        server = SimulatedServer(on: network.addHost("server"))
        client = SimulatedClient(on: network.addHost("client"), connectingTo: server)
        client.start()
        simulation.run(for: .seconds(1))
    }

    deinit {
        simulation.cancelAllEvents()
    }
}
