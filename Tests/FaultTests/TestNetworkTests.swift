import FaultSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct TestNetworkTests {
    private struct Stop: Error {}

    @Test func aNetworkIsRemovedWhenItsUserFails() async throws {
        var names: [String] = []
        await #expect(throws: Stop.self) {
            try await TestNetwork.with { network in
                names = TestNetwork.Node.allCases.map(network.namespace)
                #expect(try await namespaces().isSuperset(of: names))
                throw Stop()
            }
        }
        #expect(names.count == 3)
        #expect(try await namespaces().isDisjoint(with: names))
    }

    @Test func aNetworkIsRemovedWhenItsUserIsCancelled() async throws {
        let task = Task {
            try await TestNetwork.with { network in
                withUnsafeCurrentTask { $0?.cancel() }
                return TestNetwork.Node.allCases.map(network.namespace)
            }
        }
        let names = try await task.value
        #expect(try await namespaces().isDisjoint(with: names))
    }

    @Test func namespacesOfKilledRunsAreRemoved() async throws {
        // The number of a process that has ended.
        let dead = try await Tool.run("sh", ["-c", "echo $$"]).output.prefix(while: \.isNumber)
        let name = "lifeline-test-\(dead)-1-client"
        try await Tool.run("ip", ["netns", "add", name])
        try await TestNetwork.with { _ in
            let names = try await namespaces()
            #expect(!names.contains(name))
        }
    }

    @Test func twoNetworksDoNotDisturbEachOther() async throws {
        try await TestNetwork.with { first in
            try await TestNetwork.with { second in
                _ = try await second.filter(by: .dropAll)
                let ping = "echo >/dev/udp/\(first.serverAddress(.ipv4))/9"
                for network in [first, second] { try await network.run("bash", ["-c", ping], at: .client) }
                // It may wait for the neighbour's address first.
                try await eventually("it arrives") { try await first.arrivedPacketCount() > 0 }
                try await eventually("it is dropped") { try await second.affectedPacketCount() > 0 }
                #expect(try await first.affectedPacketCount() == 0)
            }
        }
    }

    @Test func errorsOfToolsArePassedOn() async throws {
        let failure = await #expect(throws: FaultFailure.self) {
            try await Tool.run("ip", ["link", "show", "nothing"])
        }
        #expect(failure?.description.contains("\"nothing\" does not exist") == true)
        let missing = await #expect(throws: FaultFailure.self) { try await Tool.run("no-such-tool", []) }
        #expect(missing?.description.contains("scripts/install-dependencies test") == true)
    }

    private func namespaces() async throws -> Set<String> {
        let lines = try await Tool.run("ip", ["netns", "list"]).output.split(separator: "\n")
        return Set(lines.compactMap { $0.split(separator: " ").first.map(String.init) })
    }
}
