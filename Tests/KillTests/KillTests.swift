#if Store
import LifelineTestSupport
import Testing

@testable import KillProof

/// What `scripts/kills` runs, with a few kills.
@Suite(.timeLimit(.minutes(5))) struct KillTests {
    @Test func nothingIsLostDoubledOrReordered() async throws {
        let outcome = try await Program.product("KillProof", ["--messages", "2000", "--kills", "12"]).outcome()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let line = try #require(String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").last)
        #expect(line.hasPrefix("12 kills, ") && line.hasSuffix(": 0 lost, 0 doubled, 0 reordered"))
    }

    @Test func faultsAreFound() {
        let processed = [(method: "a", number: 1), ("a", 3), ("b", 2), ("a", 2), ("b", 2)]
        let tally = KillTally(stored: ["a 1", "a 4", "b 2"], processed: processed)
        #expect(tally.findings == ["1 lost: a 4", "1 doubled: b 2", "1 reordered: a 2"])
        #expect(tally.line == "3 messages stored, 5 processed: 1 lost, 1 doubled, 1 reordered")
    }
}
#endif
