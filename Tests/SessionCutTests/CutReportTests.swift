import FaultSupport
import Foundation
import SessionCutSupport
import Testing

@testable import SessionCutProof

/// The failures of a run other than those of messages.
@Suite(.timeLimit(.minutes(5))) struct CutReportTests {
    private static let tooMany = CutReport.openingByteCount + 1

    @Test func aSessionThatGoesOn() {
        let findings = findings(
            client: [.opened("a new session"), .opened()],
            relay: [FaultEvent(.accepted), .cut("reset", after: CutReportTests.tooMany), FaultEvent(.accepted)]
        )
        #expect(findings.isEmpty)
    }

    @Test func aSessionThatDoesNotGoOnIsFound() {
        let cut = [FaultEvent(.accepted), .cut("reset", after: CutReportTests.tooMany), FaultEvent(.accepted)]
        #expect(findings(client: [.opened("a new session")], relay: cut) == ["No session went on after a cut."])
        // The connection was cut before the session began.
        let early = [FaultEvent(.accepted), .cut("reset", after: 20), FaultEvent(.accepted)]
        #expect(findings(client: [.opened("a new session")], relay: early).isEmpty)
    }

    @Test func anotherSessionIsFound() {
        let client = [FaultEvent.opened("a new session"), .opened(), .opened("a new session")]
        #expect(findings(client: client, relay: []) == ["There were 2 sessions."])
    }

    /// A program that cannot begin its record.
    @Test(arguments: ["client", "server"]) func aProgramThatFailsEarlyIsReported(name: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "session-cuts-\(UUID().uuidString)")
        let obstacle = folder.appending(path: "\(name).record")
        try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let run = CutRun(messageCount: 20, cutCount: 1, seed: 1, spoil: nil, folder: folder)
        let report = try await run.run()
        #expect(report.findings.contains("The records could not be compared."))
        let problem = name == "client" ? "A program has ended before cut 1 of 1." : "listens"
        #expect(report.problems.contains { $0.contains(problem) }, "\(report.problems)")
    }

    private func findings(client: [FaultEvent], relay: [FaultEvent]) -> [String] {
        var report = CutReport(messageCount: 20)
        report.tally = CutTally(
            of: 20,
            server: CutReportTests.entries(ofServer: true),
            client: CutReportTests.entries(ofServer: false)
        )
        report.add(client: client, relay: relay)
        return report.findings
    }

    private static func entries(ofServer isServer: Bool) -> [CutRecord.Entry?] {
        CutFlow.allCases.filter { $0.isHandledByServer == isServer }.flatMap { flow in
            (0..<flow.count(of: 20)).map { CutRecord.Entry(flow, $0 + 1) }
        }
    }
}
