import ArgumentParser
import FaultSupport
import Foundation
import SessionCutSupport

/// Runs a client and a server with a relay that cuts their connections, and compares their records.
@main struct SessionCutProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/session-cuts",
        abstract: "Cuts the connections of a session between two processes, and counts what that does to its messages.",
        discussion: """
            A client and a server talk over TCP through a relay, three processes. The messages go both ways at once: \
            pushes of two methods each way, 15 % of the messages each; two streams of the server's, one of the \
            client's, and one both ways, a sixteenth in each direction; and calls, 8.75 %. Meanwhile the relay cuts \
            one connection after the other, each after a random number of bytes, wherever in a frame that is, in one \
            of three ways: it resets both sides; it falls silent, in one direction or both, while both sides stay \
            connected, until heartbeats end that or the client's next connection takes the place of this one; it is \
            killed with bytes of both sides inside, and started again.

            Each handler writes a record of what it processed. In these records each message must be once, in the \
            order of its method or stream, with the bytes that were sent; each call must have been handled once, and \
            have ended once. The session must never be lost. If all of that is so, the status is 0; else it is 1, and \
            it is said what was wrong and where the records are. The last line has the totals.

            The seed decides how each connection is cut. The messages on the way then depend on the machine, so that \
            no two runs are the same.
            """
    )

    @Option(help: "How many messages are sent, both ways together.") var messages = 100_000
    @Option(help: "How often connections are cut meanwhile.") var cuts = 500
    @Option(help: "Which random cuts.") var seed: UInt64 = 1
    @Option(
        help: """
            To see that faults are found: what the server's handler does wrong with one push, of which it keeps a \
            record: drop, double or swap.
            """
    ) var spoil: Spoil?

    func validate() throws {
        guard (20...999_999_999).contains(messages) else {
            throw ValidationError("There can be 20 to 999999999 messages.")
        }
        guard (0...1_000_000).contains(cuts) else { throw ValidationError("There can be 0 to 1000000 cuts.") }
    }

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "session-cuts-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let report = try await CutRun(
            messageCount: messages,
            cutCount: cuts,
            seed: seed,
            spoil: spoil,
            folder: folder
        ).run()
        let findings = report.findings
        if findings.isEmpty {
            try FileManager.default.removeItem(at: folder)
        } else {
            let lines = ["FAILED, with seed \(seed):"] + findings + ["The records are in \(folder.path)"]
            FileHandle.standardError.write(Data((lines.joined(separator: "\n") + "\n").utf8))
        }
        print(report.line)
        if !findings.isEmpty { throw ExitCode.failure }
    }
}
