import Foundation
import LifelineTesting
import Testing

/// What the README shows.
@Suite struct ExampleTests {
    /// As it stands there. Returns what it says of the expressions at its end.
    private func example() -> [String: String] {
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

        for transition in client.transitions { #expect(simulation.trace.contains { $0.hasSuffix("\(transition)") }) }
        for line in simulation.trace { print(line) }
        simulation.cancelAllEvents()
        return [
            "client.state": "\(client.state)",
            "client.transitions.count { $0.to == .connecting }": "\(client.transitions.count { $0.to == .connecting })",
            "server.receivedMessages.map(\\.payload)": "\(server.receivedMessages.map(\.payload))",
        ]
    }

    @Test func aServerThatRefusesForAMinute() {
        let results = example()
        #expect(Set(results.values) == ["ready", "7", "[[1, 2, 3]]"])
    }

    @Test func theReadmeHasTheSame() throws {
        let file = URL(filePath: #filePath)
        let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let section = try #require(readme.components(separatedBy: "\n## Testing\n").dropFirst().first)
        let lines = section.components(separatedBy: "```")[1].split(separator: "\n").dropFirst()
        let own = try String(contentsOf: file, encoding: .utf8).filter { !$0.isWhitespace }
        var results = example()
        for line in lines {
            let parts = line.components(separatedBy: "//").map { $0.trimmingCharacters(in: .whitespaces) }
            if let result = results.removeValue(forKey: parts[0]) {
                // It may be explained behind it.
                #expect(parts.last == result || parts.last?.hasPrefix("\(result):") == true)
            } else {
                #expect(own.contains(parts[0].filter { !$0.isWhitespace }), "\(line)")
            }
        }
        #expect(lines.count > 12)
        #expect(results.isEmpty)
    }
}
