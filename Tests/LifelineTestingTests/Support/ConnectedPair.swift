import Lifeline
import LifelineScenarios
import LifelineTesting

/// A client and a server that can misbehave, in a world of their own.
///
/// Unchecked, like all parts of a world: only the world's thread uses it.
final class ConnectedPair: @unchecked Sendable {
    let client: ClientUser
    let server: SimulatedServer

    init(_ client: ClientUser, _ server: SimulatedServer) { (self.client, self.server) = (client, server) }
}

/// Plays a story of a pair, which is connected if the server accepts connections.
func withConnectedPair(
    name: String = #function,
    behavior: PeerBehavior = .accepting,
    configure: (inout ClientUser.Configuration) -> Void = { _ in },
    _ story: @escaping @Sendable (ConnectedPair) async throws -> Void
) async throws {
    var configuration = ClientUser.Configuration()
    configure(&configuration)
    var limits = SimulationLimits()
    limits.time = .seconds(8_000)
    try await simulate(seeds: 1...1, limits: limits, name: name) { [configuration] world in
        let server = SimulatedServer(on: world.host("server").machine)
        server.behavior = behavior
        world.host("server").run(server)
        let client = try await ClientUser.make(
            on: world.host("client"),
            in: world,
            connectingTo: "server",
            configuration: configuration
        )
        client.start()
        if behavior == .accepting { try await Task.sleep(for: .seconds(1)) }
        try await story(ConnectedPair(client, server))
    }
}
