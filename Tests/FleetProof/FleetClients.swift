import ArgumentParser
import FaultSupport
import FleetProofSupport
import Foundation
import Lifeline

/// A process with many clients. It ends with its input.
///
/// Commands, each of which it reports as done: `begin` and `stop` sending; `mark` starts the measurement of pauses and
/// the wait for sessions; `ready` waits until all clients have a session and have joined their groups since the mark;
/// `report FILE` writes the reports of all clients.
struct FleetClients: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "clients", shouldDisplay: false)

    @Option(help: "The endpoint to connect to.") var to: String
    @Option(help: "The number of the first client.") var first: Int
    @Option(help: "The number of clients.") var count: Int
    @Option(help: "The interval of each sender's messages, in milliseconds.") var every: Int

    func run() async throws {
        let endpoint = try Endpoint(to)
        let clients = (first..<first + count).map {
            ProofClient($0, of: endpoint, every: .milliseconds(every))
        }
        try await withThrowingDiscardingTaskGroup { tasks in
            for client in clients { tasks.addTask { try await client.run() } }
            try await obey(clients)
            await withDiscardingTaskGroup { closing in
                for client in clients { closing.addTask { await client.close() } }
            }
        }
    }

    private func obey(_ clients: [ProofClient]) async throws {
        while let command = try await CommandLines.next() {
            switch (command[0], command.count) {
            case ("begin", 1): for client in clients { client.begin() }
            case ("stop", 1): for client in clients { client.stop() }
            case ("mark", 1): for client in clients { client.mark() }
            case ("ready", 1):
                while !clients.allSatisfy(\.isReady) { try await Task.sleep(for: .milliseconds(20)) }
            case ("report", 2):
                let reports = try JSONEncoder().encode(clients.map(\.report))
                try reports.write(to: URL(filePath: command[1]))
            default: throw FaultFailure("Clients know no command like \(command).")
            }
            FaultEvent(.done).print()
        }
    }
}
