import ArgumentParser
import FaultSupport
import Lifeline
import LifelineProtos
import Synchronization

/// The client that faults happen to: it says what it notices.
///
/// Commands: `send COUNT`, and `flow MICROSECONDS`, which sends a message each so many microseconds until `flow 0`. It
/// closes in order at the end of its input.
@main struct FaultClient: AsyncParsableCommand {
    @Option(help: "The endpoint to connect to.") var to: String
    @Option(help: "How many bytes of text each message carries.") var size = 0
    @Option(help: "For how many milliseconds nothing may come before the peer is asked.") var heartbeatInterval =
        30_000.0
    @Option(help: "For how many milliseconds an answer is awaited.") var heartbeatTimeout = 10_000.0
    @Option(help: "After how many missing answers the peer is gone.") var allowedMisses = 3
    @Option(help: "How many milliseconds connecting may take.") var connectTimeout = 10_000.0
    @Option(help: "The longest delay before an attempt, in milliseconds.") var longestBackoff = 30_000.0

    func run() async throws {
        let connection = ReconnectingConnection(
            to: try Endpoint(to),
            connectTimeout: .milliseconds(connectTimeout),
            delay: .milliseconds(min(100, longestBackoff))
        )
        try await withThrowingTaskGroup { group in
            group.addTask { try await connection.run() }
            let sender = MessageSender(size: size) { try await connection.send($0) }
            while let command = try await CommandLines.next() {
                switch (command.first, command.dropFirst().first.flatMap { UInt64($0) }) {
                case ("send", let count?) where count > 0: await sender.send(count)
                case ("flow", let microseconds?): await sender.flow(every: .microseconds(Int64(microseconds)))
                default: throw FaultFailure("The client knows no command like \(command).")
                }
            }
            await sender.flow(every: .zero)
            connection.close()
            try await group.waitForAll()
        }
    }
}
