import ArgumentParser
import FaultSupport
import Lifeline
import LifelineCore
import LifelineProtos
import Logging

/// The client of the fault trials. It prints the events that it notices.
///
/// Commands: `send COUNT`, and `flow MICROSECONDS`, which sends a message every MICROSECONDS until `flow 0`. It closes
/// in order at the end of its input.
@main struct FaultClient: AsyncParsableCommand {
    private typealias Message = Sample_Chat_V1_ChatMessage

    @Option(help: "The endpoint to connect to.") var to: String
    @Option(help: "How many bytes of text each message carries.") var size = 0
    @Option(help: "For how many milliseconds nothing may come before the peer is asked.") var heartbeatInterval =
        30_000.0
    @Option(help: "For how many milliseconds an answer is awaited.") var heartbeatTimeout = 10_000.0
    @Option(help: "After how many missing answers the peer is gone.") var allowedMisses = 3
    @Option(help: "How many milliseconds connecting may take.") var connectTimeout = 10_000.0
    @Option(help: "The longest delay before an attempt, in milliseconds.") var longestBackoff = 30_000.0
    @Flag(help: "It watches neither its peer nor the network, so that only what ends its connection is noticed.")
    var unwatched = false

    func run() async throws {
        let client = Client(
            to: try Endpoint(to),
            configuration: configuration,
            receiving: Message.self,
            sending: Message.self,
            heartbeat: unwatched ? nil : FaultClient.heartbeat,
            logger: Logger(label: "client") { _ in SwiftLogNoOpLogHandler() }
        )
        try await withThrowingTaskGroup { group in
            group.addTask { try await FaultClient.runSayingWhatHappens(client) }
            let sender = MessageSender(size: size) { message in
                let outcome = try await client.send(message)
                guard outcome == .accepted else { throw FaultFailure("A message was dropped that may wait.") }
            }
            while let command = try await CommandLines.next() {
                switch (command.first, command.dropFirst().first.flatMap { UInt64($0) }) {
                case ("send", let count?) where count > 0: await sender.send(count)
                case ("flow", let microseconds?): await sender.flow(every: .microseconds(Int64(microseconds)))
                default: throw FaultFailure("The client knows no command like \(command).")
                }
            }
            await sender.flow(every: .zero)
            await client.close()
            try await group.waitForAll()
        }
    }

    private var configuration: ClientConfiguration {
        var configuration = ClientConfiguration()
        configuration.connection.heartbeat.interval = .milliseconds(heartbeatInterval)
        configuration.connection.heartbeat.timeout = .milliseconds(heartbeatTimeout)
        configuration.connection.heartbeat.allowedMisses = allowedMisses
        configuration.connection.connectTimeout = .milliseconds(connectTimeout)
        configuration.backoff.initialDelay = .milliseconds(min(100, longestBackoff))
        configuration.backoff.cap = .milliseconds(longestBackoff)
        // Long enough for any fault.
        configuration.backoff.maximumAttempts = nil
        if unwatched {
            configuration.connection.keepalive = nil
            configuration.connection.writeTimeout = nil
            configuration.watchesNetwork = false
        }
        return configuration
    }

    /// The peer sends back messages of this kind.
    private static let heartbeat = HeartbeatMessages<Message, Message>(
        ping: { number in
            .with { message in
                message.kind = .system
                message.nonce = number
            }
        },
        answer: { _ in nil },
        isAnswer: { $0.kind == .system }
    )

    private static func runSayingWhatHappens(_ client: Client<Message, Message>) async throws {
        // The iterator is made before the client runs, so it begins with the first step.
        var events = client.events.makeAsyncIterator()
        async let running: Void = client.run()
        while let event = await events.next() {
            guard event.missedCount == 0 else { throw FaultFailure("Missed \(event.missedCount) steps.") }
            FaultEvent.transition(event.transition).print()
            if let count = event.undeliveredMessageCount, count > 0 { FaultEvent.lost(count).print() }
        }
        try await running
    }
}

extension FaultEvent {
    fileprivate static func transition(_ transition: ConnectionTransition) -> FaultEvent {
        var event = FaultEvent.transition(
            from: "\(transition.from)",
            to: "\(transition.to)",
            reason: transition.reason.code.description,
            at: transition.time
        )
        event.attempt = transition.attempt
        event.nextAttempt = transition.nextAttempt?.nanoseconds
        return event
    }
}
