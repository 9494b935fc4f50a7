import Foundation
import LifelineTestSupport
import Testing

/// The rules that decide whether a run of Autobahn's test suite passes.
@Suite(.timeLimit(.minutes(1))) struct AutobahnReportTests {
    private let good = ["1.1": ["OK", "OK"], "1.2": ["NON-STRICT", "OK"], "1.3": ["INFORMATIONAL", "INFORMATIONAL"]]

    @Test func everyCaseRanAndConforms() async throws {
        #expect(try await complaints(server: good, client: good, count: 3) == [])
    }

    @Test func casesThatDidNotRun() async throws {
        let fewer = good.filter { $0.key != "1.2" }
        #expect(try await complaints(server: fewer, client: good, count: 3) == ["server: 2 of 3 cases ran"])
        #expect(try await complaints(server: good, client: fewer, count: 3) == ["client: 2 of 3 cases ran"])
        #expect(try await complaints(server: fewer, client: fewer, count: 3)?.count == 2)
        #expect(try await complaints(server: [:], client: [:], count: 0) == ["no case ran"])
        #expect(
            try await complaints(server: nil, client: good, count: 3)?.first == "server: the reports are of 0 programs"
        )
    }

    @Test(arguments: [
        ["FAILED", "OK"], ["OK", "FAILED"], ["OK", "WRONG CODE"], ["OK", "UNCLEAN"], ["UNIMPLEMENTED", "OK"],
    ])
    func casesThatDoNotConform(behavior: [String]) async throws {
        var bad = good
        bad["1.2"] = behavior
        let complaint = "client 1.2: \(behavior[0]), closing \(behavior[1])"
        #expect(try await complaints(server: good, client: bad, count: 3) == [complaint])
    }

    /// The complaints in addition to the counts; nil if the program did not run to its end. An empty list means
    /// success.
    private func complaints(
        server: [String: [String]]?,
        client: [String: [String]]?,
        count: Int
    ) async throws -> [String]? {
        try await withTemporaryPath("reports") { path in
            let folder = URL(filePath: path)
            for (role, cases) in [("server", server), ("client", client)] {
                let index =
                    cases.map { ["Lifeline": $0.mapValues { ["behavior": $0[0], "behaviorClose": $0[1]] }] } ?? [:]
                let file = folder.appending(path: "\(role)/index.json")
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try JSONEncoder().encode(index).write(to: file)
            }
            defer { try? FileManager.default.removeItem(at: folder) }
            let script = Checkout.folder.appending(path: "scripts/autobahn-report.py").path
            let outcome = try await Program(URL(filePath: "/usr/bin/python3"), ["-B", script, path, "\(count)"])
                .outcome()
            let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").map(String.init)
            let complaints = lines.filter { !$0.hasPrefix("Lifeline as ") }
            #expect(outcome.errorText.isEmpty)
            return outcome.status == (complaints.isEmpty ? 0 : 1) ? complaints : nil
        }
    }
}
