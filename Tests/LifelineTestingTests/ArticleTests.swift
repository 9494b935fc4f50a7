import LifelineTesting
import Testing

/// The code that the article about simulated clients shows.
@Suite struct ArticleTests {
    @Test func aServerThatRefusesForAMinute() {
        var printed: [String] = []
        func print(_ value: Any) { printed.append("\(value)") }
        // snippet.refusing-server
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
        client.send([1, 2, 3], policy: .wait(timeout: .seconds(120)))
        simulation.run(for: .seconds(60))
        server.behavior = .accepting
        simulation.run(for: .seconds(60))

        print(client.state)  // ready
        print(client.transitions.count { $0.to == .connecting })  // 7: after 1, 2, 4, 8, 16 and 30 s, each ±20 %
        print(server.receivedMessages.map(\.payload))  // [[1, 2, 3]]
        for line in simulation.trace { print(line) }  // all that happened, with its times
        simulation.cancelAllEvents()  // lets go of everything
        // snippet.end
        #expect(printed.starts(with: ["ready", "7", "[[1, 2, 3]]"]), "as the comments say")
        for transition in client.transitions { #expect(printed.contains { $0.hasSuffix("\(transition)") }) }
    }
}
