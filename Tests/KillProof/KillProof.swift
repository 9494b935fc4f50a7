#if Store
import ArgumentParser
import FaultSupport
import Foundation
import LifelineStore
import LifelineTestSupport

/// Kills a client and a server again and again while durable messages go from one to the other, and reads in the
/// server's database what became of them.
@main struct KillProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/kills",
        abstract: "Kills a client and a server of durable messages, and counts what that does to the messages.",
        discussion: """
            A client pushes durable messages of 32 methods to a server, each a process with a store of its own. The \
            server's handlers write each message to its database, in a transaction with the mark that it was processed. \
            Meanwhile one of the two, or both at once, are killed with SIGKILL, and started again with their stores.

            In the end each message that the client was told is stored must be in the database once, those of a method \
            in their order. If that is so, the status is 0; else it is 1, and it is said what was wrong and where the \
            files are. The last line has the totals.

            A kill loses nothing that a process has given to the kernel. What a loss of power does is not shown here.
            """,
        subcommands: [KillClient.self, KillServer.self]
    )

    @Option(help: "How many messages are stored at least.") var messages = 100_000
    @Option(help: "How often a process is killed.") var kills = 500
    @Option(help: "When and which.") var seed: UInt64 = 1

    func validate() throws {
        guard messages >= 0, kills >= 0 else { throw ValidationError("There can be no fewer than 0.") }
    }

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kills-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let files = KillFiles(folder: folder.path)
        var problems: [String] = []
        do {
            try await KillRun(files: files, messageCount: messages, killCount: kills, seed: seed).run()
        } catch {
            problems.append("\(error)")
        }
        let tally = try await KillTally(of: files)
        problems += tally.findings
        if problems.isEmpty {
            try FileManager.default.removeItem(at: folder)
        } else {
            let lines = ["FAILED, with seed \(seed):"] + problems + ["The files are in \(folder.path)"]
            FileHandle.standardError.write(Data((lines.joined(separator: "\n") + "\n").utf8))
        }
        print("\(kills) kills, \(tally.line)")
        if !problems.isEmpty { throw ExitCode.failure }
    }
}

/// Where client and server meet, and what they keep.
struct KillFiles {
    let folder: String

    var endpoint: String { "unix://\(folder)/socket" }
    var clientStore: String { folder + "/client.sqlite" }
    var serverStore: String { folder + "/server.sqlite" }
    /// What the client was told is stored, a line each.
    var record: String { folder + "/stored" }
}

/// One run of client and server.
struct KillRun {
    let files: KillFiles
    let messageCount: Int
    let killCount: Int
    let seed: UInt64

    /// After which time it is given up: far longer than the slowest disk takes.
    private static let patience = Duration.seconds(120)

    func run() async throws {
        var random = SeededGenerator(seed: seed)
        var (server, client) = (try server(), try client(0))
        for kill in 1...max(killCount, 1) where killCount > 0 {
            // Some come before a process has done anything.
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...400, using: &random)))
            let which = Int.random(in: 0..<3, using: &random)
            if which != 0 { try await self.kill(client) }
            if which != 1 { try await self.kill(server) }
            if which != 1 { server = try self.server() }
            if which != 0 { client = try self.client(kill) }
            if kill % 50 == 0 { FileHandle.standardError.write(Data("\(kill) kills\n".utf8)) }
        }
        try client.tell("\(messageCount)")
        try await client.any("done", within: Self.patience) { $0.event == .done }
        for program in [client, server] {
            let status = try await program.finish()
            if status != 0 { throw FaultFailure("A program ended with status \(status).") }
        }
    }

    private func kill(_ program: LineProgram) async throws {
        try program.signal(SIGKILL)
        _ = try await program.waitForEnd()
    }

    private func server() throws -> LineProgram {
        try LineProgram(product: "KillProof", ["server", "--folder", files.folder])
    }

    /// - Parameter number: how many there were before.
    private func client(_ number: Int) throws -> LineProgram {
        try LineProgram(product: "KillProof", ["client", "--folder", files.folder, "--number", "\(number)"])
    }
}
#else
@main enum KillProof {
    static func main() { print("It was built without the trait Store. Run scripts/kills, which builds it.") }
}
#endif
