#if Store
import Foundation
import LifelineTestSupport
import Testing

@testable import KillProof

/// Runs the program of `scripts/kills` with a few kills.
@Suite(.timeLimit(.minutes(5))) struct KillTests {
    @Test func nothingIsLostDoubledOrReordered() async throws {
        let outcome = try await Program.product("KillProof", ["--messages", "2000", "--kills", "12"]).outcome()
        #expect(outcome.status == 0, "\(outcome.errorText)")
        let line = try #require(String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").last)
        #expect(line.hasPrefix("12 kills, ") && line.hasSuffix(": 0 lost, 0 doubled, 0 reordered"))
    }

    /// Synchronized writes are kept, and others are kept or lost.
    @Test func powerIsLost() async throws {
        try await withTemporaryPath("file.sqlite") { path in
            func record(_ kind: UInt8, _ offset: UInt8 = 0, _ bytes: String = "") -> [UInt8] {
                [kind, offset, UInt8(bytes.utf8.count)].flatMap { [$0] + [UInt8](repeating: 0, count: 7) } + bytes.utf8
            }
            var random = SeededGenerator(seed: 1)
            var contents: Set<String> = []
            for _ in 1...50 {
                try Data("aaaa".utf8).write(to: URL(filePath: path + ".durable"))
                try Data("what the process saw".utf8).write(to: URL(filePath: path))
                let records = record(1, 1, "bb") + record(3) + record(1, 3, "cc") + record(2, 2)
                // The last one is cut off.
                try Data(records + record(1, 0, "d").dropLast()).write(to: URL(filePath: path + ".unsynced"))
                _ = try PowerLoss.strike(path, using: &random)
                contents.insert(try String(contentsOfFile: path, encoding: .utf8))
                #expect(!FileManager.default.fileExists(atPath: path + ".unsynced"))
            }
            #expect(contents == ["abba", "abbcc", "ab"])
            // One that was never synchronized is not there.
            try FileManager.default.removeItem(atPath: path + ".durable")
            try Data(record(1, 0, "e")).write(to: URL(filePath: path + ".unsynced"))
            _ = try PowerLoss.strike(path, using: &random)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func faultsAreFound() {
        let processed = [(method: "a", number: 1), ("a", 3), ("b", 2), ("a", 2), ("b", 2)]
        let tally = KillTally(stored: ["a 1", "a 4", "b 2"], processed: processed)
        #expect(tally.findings == ["1 lost: a 4", "1 doubled: b 2", "1 reordered: a 2"])
        #expect(tally.line == "3 messages stored or answered, 5 processed: 1 lost, 1 doubled, 1 reordered")
    }
}
#endif
