#if Store
import ArgumentParser
import FaultSupport
import Lifeline
import LifelineStore
import LifelineWellKnownTypes
import Logging
import Synchronization

/// The client that is killed. It pushes and calls until it has sent the number of messages that it is told. Then it
/// waits until all are processed, and reports that it is done. It ends with its input.
struct KillClient: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "client", shouldDisplay: false)

    @Option var folder: String
    @Option(help: "The number of earlier clients.") var number: Int

    /// Each method has one message under way, so that its messages have an order.
    static let pushMethods = (0..<16).map { "kill.Push/\($0)" }
    static let callMethods = (0..<16).map { "kill.Call/\($0)" }
    /// The numbers of a method's messages are above those of the client before.
    private static let numbersPerClient = 1_000_000

    func run() async throws {
        let files = KillFiles(folder: folder)
        var configuration = SessionClientConfiguration()
        configuration.store = try SQLiteSessionStore(
            path: files.clientStore,
            for: .client(of: Endpoint(files.endpoint))
        )
        configuration.client.backoff.initialDelay = .milliseconds(1)
        configuration.client.backoff.cap = .milliseconds(20)
        configuration.client.backoff.maximumAttempts = nil
        configuration.maximumPause = .milliseconds(20)
        // The parent process ends this program when there is no more progress.
        configuration.closeTimeout = .seconds(3600)
        let record = try LineRecord(at: files.record)
        let goal = Goal()
        let work = Task { [configuration, number] in
            let endpoint = try Endpoint(files.endpoint)
            try await withSessionClient(to: endpoint, configuration: configuration, logger: .quiet) { client in
                try await withThrowingDiscardingTaskGroup { group in
                    for method in Self.pushMethods + Self.callMethods {
                        group.addTask { try await Self.send(method, behind: number, client, record, goal) }
                    }
                }
            }
            // Closing has waited until all were processed.
            FaultEvent(.done).print()
        }
        while let words = try await CommandLines.next() {
            goal.count.store(Int(words[0]) ?? 1, ordering: .sequentiallyConsistent)
        }
        try await work.value
    }

    /// The number of messages to store; 0: not known yet.
    private final class Goal: Sendable {
        let count = Atomic(0)
    }

    /// Pushes a message, or calls the method if it replies.
    private static func send(
        _ method: String,
        behind number: Int,
        _ client: SessionClient,
        _ record: LineRecord,
        _ goal: Goal
    ) async throws {
        var message = number * numbersPerClient
        while true {
            let goal = goal.count.load(ordering: .sequentiallyConsistent)
            if goal > 0, record.count >= goal { return }
            message += 1
            let number = Google_Protobuf_Int64Value(Int64(message))
            if callMethods.contains(method) {
                let reply: Google_Protobuf_Int64Value =
                    try await client.call(method, number, timeout: nil, delivery: .durable)
                guard reply == number else { throw FaultFailure("\(method) \(message) has the reply \(reply.value).") }
            } else {
                try await client.push(method, number, delivery: .durable)
            }
            try record.add("\(method) \(message)")
        }
    }
}

extension Logger {
    /// Does not log lost connections and sessions, because the processes are killed.
    static var quiet: Logger {
        var logger = Logger(label: "kills") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}
#endif
