import FaultSupport
import Foundation
import LifelineTestSupport
import Testing

/// Runs the program of `scripts/fleet` with a few clients.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FleetProofTests {
    @Test func nothingIsLostDoubledOrReorderedWhileRedisStandsStill() async throws {
        let outcome = try await outcome([])
        #expect(outcome.status == 0, "\(outcome.errorText)")
        #expect(try counts(of: outcome) == ["0", "0", "0"])
    }

    /// A server's fault is found.
    @Test(arguments: Spoil.allCases) func oneThatIsNotAsItShouldBeIsFound(_ spoil: Spoil) async throws {
        let outcome = try await outcome(["--spoil", spoil.rawValue])
        #expect(outcome.status == 1)
        let finding = [Spoil.drop: ["1", "0", "0"], .double: ["0", "1", "0"], .swap: ["0", "0", "1"]]
        #expect(try counts(of: outcome) == finding[spoil])
        #expect(String(decoding: outcome.output, as: UTF8.self).contains("notes of client 0: 1 "))
    }

    private func outcome(_ arguments: [String]) async throws -> Program.Outcome {
        let arguments = ["--quick", "--clients", "6", "--only", "redis-paused"] + arguments
        return try await Program.product("FleetProof", arguments).outcome()
    }

    /// The table's numbers of lost, doubled and reordered messages.
    private func counts(of outcome: Program.Outcome) throws -> [String] {
        let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
        let row = try #require(lines.first { $0.hasPrefix("redis-paused") }).split(separator: " ")
        return row.prefix(6).dropFirst(3).map(String.init)
    }
}
