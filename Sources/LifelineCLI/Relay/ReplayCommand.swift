internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineReflection
internal import Synchronization

struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Prints what `lifeline relay --record` has recorded, or sends a client's messages again.",
        discussion: """
            Without --to it prints the messages, decoded, as `lifeline relay` shows them, with the time in seconds since \
            the relay had begun.

            With --to it connects to a server, and sends what the client of one connection (--connection) had sent, \
            with the same pauses, or --speed times as fast. The replies are printed as `lifeline receive` does. When all is \
            sent, it waits until as many replies have come as were recorded, but no longer than --wait; then it ends \
            its side, and waits as long again for the server's end. The last line says how many replies there were, also \
            after an interrupt or a failure; where the record has another number, the command fails with 65. A server \
            that takes nothing for three minutes is given up.

            Examples:
              lifeline replay chat.jsonl                                    # by field numbers
              lifeline replay chat.jsonl --proto chat.proto --type ChatMessage
              lifeline replay chat.jsonl --to tcp://127.0.0.1:7000 --connection 2
              lifeline replay chat.jsonl --to tcp://127.0.0.1:7000 --speed 10 --proto chat.proto --type ChatMessage
              lifeline replay chat.jsonl --to tcp://127.0.0.1:7000 --speed 0 > replies      # without pauses

            Exit codes: 0 done, 64 wrong usage, 65 bad data, a message above --limit, a schema or certificate that cannot \
            be used, or another number of replies, 69 the server cannot be reached, a certificate refused, or protoc \
            cannot be run, 74 input or output failed, or the connection was lost, 130 and 143 interrupted.
            """
    )

    @Argument(help: "The record.", completion: .file())
    var file: String

    @Option(help: ArgumentHelp("Where to send the client's messages.", valueName: "url"))
    var to: String?

    @Option(
        help: ArgumentHelp(
            "The connection in the record. Default: the first one; without --to, all of them.",
            valueName: "number"
        )
    )
    var connection: Int?

    @OptionGroup var types: TrafficTypes

    @Option(help: "Without --to, lines or json. Default: lines on a terminal, json elsewhere.")
    var format: TrafficFormat?

    @Option(help: ArgumentHelp("So many times as fast as it was; 0: without pauses. Default: 1.", valueName: "factor"))
    var speed: Double?

    @Option(help: ArgumentHelp("How long to wait for replies when all is sent. Default: 5.", valueName: "seconds"))
    var wait: Double?

    @OptionGroup var limit: MessageLimit

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup(title: "TLS") var tls: ClientTLSArguments

    @Flag(help: "Do not tell how many replies have come when there are as many as were recorded.")
    var quiet = false

    @Flag(help: "At the end, tell how many messages and replies there were, as a JSON object on standard error.")
    var json = false

    func validate() throws {
        if let connection, connection < 1 { throw ValidationError("--connection must be at least 1.") }
        if let speed, !(0...1e9).contains(speed) { throw ValidationError("--speed must be 0 to 1,000,000,000.") }
        _ = try waitingTime
        if let to {
            try tls.validate(for: parseEndpoint(to))
            if format != nil {
                throw ValidationError("--format goes without --to; replies are printed as JSON or text.")
            }
        } else if speed != nil || wait != nil || quiet || json || proxy.proxy != nil || proxy.noProxy
            || tls.trust.isGiven || tls.identity.certificate != nil
        {
            throw ValidationError("--speed, --wait, --quiet, --json, --proxy and those of TLS go with --to.")
        }
    }

    private var waitingTime: Duration { get throws { try parseSeconds(wait ?? 5, of: "--wait") } }

    func run() async throws {
        try await exitingOnFailure {
            if let to {
                try await replay(to: parseEndpoint(to))
            } else {
                try await print()
            }
        }
    }

    // MARK: Printing

    private func print() async throws {
        let output = OutputFile.standardOutput
        let text = try types.text(format, to: output, limit: limit.ofConnections)
        var (reader, count) = (TrafficRecordReader(try InputFile(path: file)), 0)
        while let batch = try await reader.next() {
            var lines: [UInt8] = []
            for passed in batch where connection == nil || passed.connection == connection {
                try text.append(passed, at: nil, to: &lines)
                count += 1
            }
            try await output.write(lines)
        }
        if count == 0 { throw nothingFound(of: connection) }
    }

    private func nothingFound(of connection: Int?, by direction: String = "") -> CommandFailure {
        let owner = connection.map { " of connection \($0)" } ?? ""
        return CommandFailure(status: .badData, message: "There is no message\(owner)\(direction) in \(file).")
    }

    // MARK: Sending again

    private func replay(to endpoint: Endpoint) async throws {
        let (number, recordedSentCount, recordedCount) = try await survey()
        let pool = try types.schema.load()
        let printer = MessagePrinter(
            form: PrintedForm(
                nil,
                of: try pool.messageType(named: types.replyType ?? types.type),
                json: types.json,
                limit: limit.ofConnections
            ),
            output: .standardOutput,
            limit: nil,
            // A reply that cannot be decoded is reported, and counts nevertheless.
            skipsBadMessages: true,
            isQuiet: true
        )
        let words = StepWords(peer: endpoint.name, isVerbose: false, hasFramings: false)
        let counts = ReplayCounts(recordedSentCount: recordedSentCount)
        let interruption = await Interruption()
        let result = await Result.of {
            try await untilInterrupted(interruption) {
                try await withConnection(
                    to: endpoint,
                    configuration: connectionConfiguration,
                    receiving: RawMessage.self,
                    sending: RawMessage.self
                ) { try await exchange(over: $0, printer, recordedCount, counts, of: number) }
            }
        }
        let isComplete = if case .success = result { true } else { false }
        let comparison = try report(counts, recordedCount, of: number, isComplete: isComplete)
        do {
            try result.get()
        } catch let error as ConnectionError {
            throw words.failure(for: error)
        }
        if let comparison { throw comparison }
    }

    private var connectionConfiguration: ConnectionConfiguration {
        get throws {
            var configuration = ConnectionConfiguration()
            configuration.maximumFrameLength = limit.ofConnections
            configuration.proxy = try proxy.configuration
            configuration.tls = tls.configuration
            configuration.closeTimeout = .seconds(1)
            configuration.writeTimeout = slowReaderPatience
            configuration.keepalive = .ofSlowReaders
            return configuration
        }
    }

    /// Finds the requested connection, and its numbers of messages to the server and of replies.
    private func survey() async throws -> (connection: Int, sentCount: Int, replyCount: Int) {
        var reader = TrafficRecordReader(try InputFile(path: file), isQuiet: true)
        var (number, sentCount, replyCount) = (connection, 0, 0)
        while let batch = try await reader.next() {
            number = number ?? batch.first?.connection
            for passed in batch where passed.connection == number {
                if passed.direction == .toServer { sentCount += 1 } else { replyCount += 1 }
            }
        }
        guard let number, sentCount > 0 else { throw nothingFound(of: number, by: " to the server") }
        return (number, sentCount, replyCount)
    }

    /// Sends and receives, until both are done.
    ///
    /// - Throws: the first failure of either, which ends the other.
    private func exchange(
        over connection: Connection<RawMessage, RawMessage>,
        _ printer: MessagePrinter,
        _ recordedCount: Int,
        _ counts: ReplayCounts,
        of number: Int
    ) async throws {
        let wait = try waitingTime
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                for try await batch in connection.messages.batches {
                    try await printer.print(batch, after: counts.replyCount, of: connection.remoteEndpoint.name)
                    counts.replied(batch.count)
                }
                counts.finish()
                // The peer may still read.
                if !counts.isAllSent, !quiet, !json {
                    tellStep("\(connection.remoteEndpoint.name) has ended its side, and gets the rest all the same")
                }
                return false
            }
            group.addTask {
                try await send(over: connection, counts, of: number)
                _ = try await within(wait) { await counts.waitForReplies(recordedCount) }
                try await connection.finishSending()
                _ = try await within(wait) { await counts.waitForEnd() }
                return true
            }
            while try await group.next() == false {}
            group.cancelAll()
        }
    }

    /// Sends the messages at their recorded pace.
    private func send(
        over connection: Connection<RawMessage, RawMessage>,
        _ counts: ReplayCounts,
        of number: Int
    ) async throws {
        let speed = speed ?? 1
        let start = ContinuousClock.now
        var reader = TrafficRecordReader(try InputFile(path: file))
        var firstTime = Double?.none
        while let batch = try await reader.next() {
            for passed in batch where passed.connection == number && passed.direction == .toServer {
                let offset = passed.time - (firstTime ?? passed.time)
                firstTime = firstTime ?? passed.time
                // At most a year, to stay in the range of clocks.
                let delay = speed > 0 ? min(offset / speed, 3e7) : 0
                if delay > 0 { try await Task.sleep(until: start + .seconds(delay), clock: .continuous) }
                try await connection.send(passed.message)
                counts.sent()
            }
        }
    }

    /// Reports the numbers of messages and replies.
    ///
    /// - Returns: the failure if the record has another number of replies.
    private func report(
        _ counts: ReplayCounts,
        _ recordedCount: Int,
        of number: Int,
        isComplete: Bool
    ) throws -> CommandFailure? {
        let (sentCount, replyCount) = (counts.sentCount, counts.replyCount)
        if json {
            let report = ReplayReport(sent: sentCount, replies: replyCount, recordedReplies: recordedCount)
            try writeErrorLine(json: report)
        }
        let sent = "sent \(sentCount == 1 ? "1 message" : "\(sentCount) messages") of connection \(number)"
        let came = replyCount == 1 ? "1 reply came" : "\(replyCount) replies came"
        let recorded = recordedCount == 1 ? "1 was recorded" : "\(recordedCount) were recorded"
        if isComplete, replyCount != recordedCount {
            return CommandFailure(
                status: .badData,
                message: "Another number of replies: \(sent); \(came), and \(recorded)."
            )
        }
        if !quiet, !json { tellStep("\(sent); \(came), \(isComplete ? "as recorded" : "and \(recorded)")") }
        return nil
    }
}

/// The report of `replay --json` at its end.
private struct ReplayReport: Encodable {
    let sent: Int
    let replies: Int
    let recordedReplies: Int
}

/// Counts what was sent, and the replies that have come.
private final class ReplayCounts: Sendable {
    private let recordedSentCount: Int
    private let sentTotal = Atomic(0)
    private let replyTotal = Atomic(0)
    private let changes = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
    private let end = AsyncStream.makeStream(of: Never.self)

    var sentCount: Int { sentTotal.load(ordering: .relaxed) }
    var replyCount: Int { replyTotal.load(ordering: .relaxed) }

    var isAllSent: Bool { sentCount >= recordedSentCount }

    init(recordedSentCount: Int) {
        self.recordedSentCount = recordedSentCount
    }

    func sent() { sentTotal.add(1, ordering: .relaxed) }

    func replied(_ count: Int) {
        changes.continuation.yield(replyTotal.add(count, ordering: .relaxed).newValue)
    }

    /// Notes that no more replies will come.
    func finish() {
        changes.continuation.finish()
        end.continuation.finish()
    }

    /// Waits for this many replies, or for the last one.
    func waitForReplies(_ count: Int) async {
        if replyCount >= count { return }
        for await current in changes.stream where current >= count { return }
    }

    func waitForEnd() async {
        for await _ in end.stream {}
    }
}
