#if Store
import ArgumentParser
import FaultSupport
import Foundation
import LifelineStore
import LifelineTestSupport

/// Kills a client and a server again and again while they exchange durable messages, and checks the messages in the
/// server's database.
@main struct KillProof: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scripts/kills",
        abstract: "Kills a client and a server of durable messages, and checks that each message is processed once.",
        discussion: """
            A client sends durable messages of 32 methods to a server: half of them are pushes, half of them calls. \
            Each of the two is a process with its own store. The server's handlers write each message to its database, \
            in one transaction with the mark that it was processed, and with the reply. Meanwhile one process, or both \
            at once, are killed with SIGKILL, and started again with their stores.

            At the end, each push that was stored according to the client, and each answered call, must be in the \
            database once, and the pushes of a method must be in order. If so, the exit status is 0. Otherwise it is \
            1, and the failures and the folder of the files are printed. The last line has the totals.

            A kill loses nothing that a process has passed to the kernel. With --power-loss, each write that a killed \
            process has not synchronized is kept, lost or torn at random. A deleted file does not come back, and no \
            file loses its name.
            """,
        subcommands: [KillClient.self, KillServer.self]
    )

    @Option(help: "The least number of messages that are stored.") var messages = 100_000
    @Option(help: "The number of kills.") var kills = 500
    @Option(help: "The seed that chooses the times and the processes of the kills.") var seed: UInt64 = 1
    @Flag(help: "Simulate a loss of power with each kill.") var powerLoss = false

    func validate() throws {
        guard messages >= 0, kills >= 0 else { throw ValidationError("There can be no fewer than 0.") }
    }

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kills-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let files = KillFiles(folder: folder.path)
        var (problems, lostWriteCount) = ([String](), 0)
        do {
            let run = KillRun(
                files: files,
                messageCount: messages,
                killCount: kills,
                seed: seed,
                losesPower: powerLoss
            )
            if powerLoss {
                let library = ProcessInfo.processInfo.environment["LIFELINE_POWER_LOSS_LIBRARY"] ?? "power_loss.so"
                try PowerLoss.record(in: folder.path, with: library)
            }
            lostWriteCount = try await run.run()
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
        print("\(kills) kills\(powerLoss ? " with \(lostWriteCount) writes lost" : ""), \(tally.line)")
        if !problems.isEmpty { throw ExitCode.failure }
    }
}

/// The endpoint of the server, and the files of both.
struct KillFiles {
    let folder: String

    var endpoint: String { "unix://\(folder)/socket" }
    var clientStore: String { folder + "/client.sqlite" }
    var serverStore: String { folder + "/server.sqlite" }
    /// The messages that were stored according to the client, one in a line.
    var record: String { folder + "/stored" }
}

/// One run of client and server.
struct KillRun {
    let files: KillFiles
    let messageCount: Int
    let killCount: Int
    let seed: UInt64
    let losesPower: Bool

    /// The time after which the run is given up: far longer than the slowest disk needs.
    private static let patience = Duration.seconds(120)

    /// Returns how many writes were lost.
    func run() async throws -> Int {
        var random = SeededGenerator(seed: seed)
        var lostWriteCount = 0
        var (server, client) = (try server(), try client(0))
        for kill in 1...max(killCount, 1) where killCount > 0 {
            // Some kills come before a process has done anything.
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...400, using: &random)))
            let which = Int.random(in: 0..<3, using: &random)
            if which != 0 { lostWriteCount += try await self.kill(client, files.clientStore, &random) }
            if which != 1 { lostWriteCount += try await self.kill(server, files.serverStore, &random) }
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
        return lostWriteCount
    }

    /// Returns how many of its writes were lost.
    private func kill(_ program: LineProgram, _ store: String, _ random: inout SeededGenerator) async throws -> Int {
        try program.signal(SIGKILL)
        _ = try await program.waitForEnd()
        return losesPower ? try PowerLoss.strike(store, using: &random) : 0
    }

    private func server() throws -> LineProgram {
        try LineProgram(product: "KillProof", ["server", "--folder", files.folder])
    }

    /// - Parameter number: the number of earlier kills.
    private func client(_ number: Int) throws -> LineProgram {
        try LineProgram(product: "KillProof", ["client", "--folder", files.folder, "--number", "\(number)"])
    }
}
#else
@main enum KillProof {
    static func main() { print("It was built without the trait Store. Run scripts/kills, which builds it.") }
}
#endif
