import FaultSupport
import Testing

/// A client that watches the network, in namespaces. They need root.
@Suite(.timeLimit(.minutes(1)), .serialized) struct ClientNetworkTests {
    /// For the client this is a name, because only the name service parses it. The name service resolves it to
    /// 10.77.2.2 without asking a server.
    private let name = "10.77.514"

    private func withClient(
        of name: String,
        _ body: nonisolated(nonsending) (_ client: LineProgram, _ network: TestNetwork) async throws -> Void
    ) async throws {
        try await TestNetwork.with { network in
            // The leftovers of containers: a bridge with an address and a port that is up.
            try await network.ip(
                [
                    "link add docker0 type bridge", "address add 172.17.0.1/16 dev docker0", "link set docker0 up",
                    "link add guest type veth peer name inside", "link set guest master docker0 up",
                    "link set inside up",
                ],
                at: .client
            )
            let address = network.serverAddress(.ipv4)
            let peer = try LineProgram(
                product: "FaultPeer",
                ["--on", "tcp://\(address):7000"],
                at: .server,
                of: network
            )
            _ = try await peer.next("that it listens") { $0.event == .listening }
            let client = try LineProgram(
                product: "FaultClient",
                ["--to", "tcp://\(name):7000", "--longest-backoff", "200"],
                at: .client,
                of: network
            )
            do {
                try await body(client, network)
                for program in [client, peer] { #expect(try await program.finish() == 0) }
            } catch {
                for program in [client, peer] {
                    try? program.signal(9)
                    try await program.waitForEnd()
                }
                throw error
            }
        }
    }

    @Test func aNameWaitsForANetworkThatLeadsBeyondTheMachine() async throws {
        try await withClient(of: name) { client, network in
            _ = try await client.next("that it is ready") { $0.to == "ready" }
            try await network.ip(["link set eth0 down"], at: .client)
            let lost = try await client.next("that it lost its connection") { $0.from == "ready" }
            #expect(lost.to == "waitingForNetwork" && lost.reason == "networkLost")
            try await network.ip(["link set eth0 up", "route add default via 10.77.1.1"], at: .client)
            let back = try await client.next("that it tries again") { $0.from == "waitingForNetwork" }
            #expect(back.to == "connecting" && back.reason == "networkUp")
            _ = try await client.next("that it is ready again") { $0.to == "ready" }
        }
    }

    /// A machine in the local network, without a router.
    @Test func aNameIsTriedWithoutADefaultRoute() async throws {
        try await withClient(of: name) { client, network in
            _ = try await client.next("that it is ready") { $0.to == "ready" }
            try await network.ip(["link set eth0 down"], at: .client)
            _ = try await client.next("that it waits") { $0.to == "waitingForNetwork" }
            // Only the route of the local network comes back.
            try await network.ip(["link set eth0 up"], at: .client)
            let back = try await client.next("that it tries again") { $0.from == "waitingForNetwork" }
            #expect(back.reason == "networkUp")
            // So that both ends are done with each other.
            try await network.ip(["route add default via 10.77.1.1"], at: .client)
            _ = try await client.next("that it is ready again", within: .seconds(20)) { $0.to == "ready" }
        }
    }

    /// There is only the bridge, and the name leads to it.
    @Test func aNameOfAContainerIsTried() async throws {
        try await withClient(of: "172.17.1") { client, network in
            // The address is this machine's own on the bridge, where nobody listens.
            _ = try await client.next("that it is refused") { $0.to == "backingOff" }
            try await network.ip(["link set eth0 down"], at: .client)
            try await goesOnTrying(client)
            // At first, the network is unknown.
            let waited = client.steps.dropFirst().contains { $0.to == "waitingForNetwork" }
            #expect(!waited)
        }
    }

    private func goesOnTrying(_ client: LineProgram) async throws {
        // The first attempt may have begun before.
        for _ in 0..<3 { _ = try await client.next("that it goes on trying") { $0.to == "connecting" } }
    }
}
