import Lifeline
import LifelineFleet
import LifelineScenarios
import LifelineTesting
import Testing

/// Fleets in a world.
@Suite(.timeLimit(.minutes(10))) struct FleetStoryTests {
    /// `scripts/soak --fleet-scenarios` runs more of them.
    @Test func aBadDay() async throws {
        try await simulate(seeds: 1...10) { try await FleetStory.tell(in: $0) }
    }

    /// The server seems alive to the store, but answers no client. Its sessions are lost when its lease expires.
    @Test func aServerThatHangsDoesNotHoldItsSessionsForLong() async throws {
        try await simulate(seeds: 1...10) { world in
            let store = SimulatedFleetStore(on: world.host("store"))
            (store.lossProbability, store.newsProbability) = (0, 0)
            let servers = [world.host("a"), world.host("b")]
            for server in servers {
                server.run {
                    let fleet = Fleet(engine: store.engine(), nodeName: server.name, logger: world.logger)
                    try await withSessionServer(
                        listeningOn: Endpoint("tcp://0.0.0.0:7000"),
                        services: [fleet],
                        logger: world.logger
                    ) {
                        try await $0.waitUntilShutDown()
                    }
                }
            }
            world.alias("fleet", of: [servers[0]])
            world.host("client").run {
                var configuration = SessionClientConfiguration()
                configuration.client.backoff.maximumAttempts = nil
                configuration.client.backoff.cap = .seconds(1)
                configuration.client.connection.heartbeat.interval = .seconds(1)
                configuration.client.connection.heartbeat.timeout = .seconds(1)
                try await withSessionClient(
                    to: Endpoint("tcp://fleet:7000"),
                    configuration: configuration,
                    logger: world.logger
                ) { session in
                    try await Task.sleep(for: .seconds(15))
                    let first = session.sessionHistory.count { if case .opened = $0.kind { true } else { false } }
                    try world.expect(first == 1, "it has a session")
                    world.alias("fleet", of: [servers[1]])
                    servers[0].machine.sleep(for: .seconds(300))
                    try await world.until("the session is lost, and told", within: .seconds(25)) {
                        session.sessionHistory.contains { if case .lost = $0.kind { true } else { false } }
                    }
                }
            }
            try await Task.sleep(for: .seconds(60))
        }
    }
}
