import ArgumentParser
import FaultSupport
import Foundation
import SessionCutSupport

/// Runs a client and a server with a relay that cuts their connections, and compares their records.
@main struct SessionCutProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/session-cuts",
        abstract: "Cuts the connections of a session between two processes, and checks that each message arrives once.",
        discussion: """
            A client and a server exchange messages over TCP through a relay. All three are processes. Messages go \
            both ways at once: pushes of two methods each way, 15 % of the messages each; two server streams, one \
            client stream, and one stream both ways, a sixteenth in each direction; and calls, 8.75 %. Meanwhile the \
            relay cuts one connection after the other, each after a random number of bytes, also within a frame, in \
            one of three ways. It resets both sides. Or it becomes silent in one or both directions, while both sides \
            stay connected, until a heartbeat fails or the client's next connection replaces this one. Or it is killed \
            while it holds bytes of both sides, and started again.

            Each handler records the messages that it processes. Each message must be in the records once, in the \
            order of its method or stream, and with the sent bytes. Each call must be handled once, and end once. The \
            session must never be lost. If so, the exit status is 0. Otherwise it is 1, and the failures and the \
            folder of the records are printed. The last line has the totals.

            The seed determines how each connection is cut. The messages that are on their way then also depend on the \
            machine, so no two runs are the same.
            """
    )

    @Option(help: "The number of messages, both ways together.") var messages = 100_000
    @Option(help: "The number of cuts.") var cuts = 500
    @Option(help: "The seed of the random cuts.") var seed: UInt64 = 1
    @Option(
        help: """
            Shows that the check works: the error that the server's handler makes when it records one push: drop, \
            double or swap.
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
