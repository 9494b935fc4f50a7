import FaultSupport
import Foundation
import LifelineTestSupport
import SessionCutSupport
import Testing

/// Runs the program of `scripts/session-cuts`, with only a few cuts, because many take long.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SessionCutProofTests {
    @Test func nothingIsLostDoubledOrReordered() async throws {
        let outcome = try await outcome(["--seed", "7"])
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let line = try #require(String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").last)
        #expect(line.hasPrefix("1000 messages, 6 cuts ("))
        #expect(line.hasSuffix(": 0 lost, 0 doubled, 0 reordered"))
    }

    /// A handler's fault is found.
    @Test(arguments: Spoil.allCases) func oneThatIsNotAsItShouldBeIsFound(_ spoil: Spoil) async throws {
        let outcome = try await outcome(["--spoil", spoil.rawValue])
        #expect(outcome.status == 1)
        let finding = [
            Spoil.drop: "1 lost, 0 doubled, 0 reordered",
            .double: "0 lost, 1 doubled, 0 reordered",
            .swap: "0 lost, 0 doubled, 1 reordered",
        ]
        let line = try #require(String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").last)
        #expect(line.hasSuffix(": \(finding[spoil] ?? "")"))
        #expect(outcome.errorText.contains("reports: 1 "))
    }

    private func outcome(_ arguments: [String]) async throws -> Program.Outcome {
        let arguments = ["--messages", "1000", "--cuts", "6"] + arguments
        return try await Program.product("SessionCutProof", arguments).outcome()
    }
}
