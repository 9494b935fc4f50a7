#if Store
import ArgumentParser
import FaultSupport
import Lifeline
import LifelineStore
import LifelineWellKnownTypes
import Logging
import Synchronization

/// The client that is killed. It pushes and calls until it is told how many messages there are to be, and there are so
/// many; then it waits until all are processed, and says that it is done. It ends with its input.
struct KillClient: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "client", shouldDisplay: false)

    @Option var folder: String
    @Option(help: "How many clients there were before.") var number: Int

    /// Each has one message under way, so that those of a method have an order.
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
        // Whoever waits for this program ends it when nothing moves any more.
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

    /// How many messages are to be stored; 0: it is not known yet.
    private final class Goal: Sendable {
        let count = Atomic(0)
    }

    /// Pushes, or calls where the method is one that replies.
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
    /// Says nothing of connections and sessions that are lost, as the processes are killed.
    static var quiet: Logger {
        var logger = Logger(label: "kills") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }
}
#endif
