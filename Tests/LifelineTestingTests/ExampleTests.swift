import LifelineTesting
import Testing

/// What the README shows.
@Suite struct ExampleTests {
    @Test func aServerThatRefusesForAMinute() {
        let simulation = Simulation(seed: 1)
        let network = SimulatedNetwork(simulation: simulation)
        let server = SimulatedServer(on: network.addHost("server"))
        var configuration = SimulatedClient.Configuration()
        configuration.backoff.maximumAttempts = nil
        let client = SimulatedClient(
            on: network.addHost("client"),
            connectingTo: server,
            configuration: configuration
        )

        server.behavior = .refusing
        client.start()
        client.send([1, 2, 3], policy: .wait(upTo: .seconds(120)))
        simulation.run(for: .seconds(60))
        server.behavior = .accepting
        simulation.run(for: .seconds(60))

        #expect(client.state == .ready)
        #expect(client.transitions.count { $0.to == .connecting } == 7)
        #expect(server.receivedMessages.map(\.payload) == [[1, 2, 3]])
        for transition in client.transitions { #expect(simulation.trace.contains { $0.hasSuffix("\(transition)") }) }
        simulation.cancelAllEvents()
    }
}
