internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineProtos
internal import SampleServices

struct CallEcho: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "echo",
        abstract: "Asks for echoes, and counts the replies.",
        discussion: """
            Asks --count times, with the numbers 1, 2, 3 and so on, --concurrency of them at once. With --text, prints each reply's \
            text. The last line on standard error counts:
              100000 calls: 100000 replied; 37 were in doubt when a session was lost, and were asked again

            Calls are in doubt that had been sent to a server and not answered when it was killed, since it may have handled them. \
            An echo does no harm when it is handled twice, and so they are asked again; other calls had better be asked \
            again only if the server can tell that it knows them already. \
            Which they were, a line tells when it happens; `lifeline serve --record` shows what was handled twice.

            Examples:
              lifeline call --text "Hello"
              lifeline call --count 100000
              lifeline call --count 100000 --concurrency 1 --timeout 5
            """
    )

    private static let maximumConcurrency = 1024

    @Option(help: "Send this text with each echo, and print what comes back.")
    var text: String?

    @Option(help: "How many echoes to ask for.")
    var count = 1

    @Option(help: "How many to ask for at once: 1 to \(Self.maximumConcurrency).")
    var concurrency = 64

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var call: CallOptions

    func validate() throws {
        if count < 1 { throw ValidationError("--count must be at least 1.") }
        guard 1...Self.maximumConcurrency ~= concurrency else {
            throw ValidationError("--concurrency must be 1 to \(Self.maximumConcurrency).")
        }
    }

    func run() async throws {
        try await exitingOnFailure {
            let run = EchoRun(count: count, text: text, timeout: try timeout.duration, isQuiet: call.quiet)
            let concurrency = min(concurrency, count)
            do {
                try await call.withRoom(describe: EchoRun.describe, afterLoss: "; asking again") { room in
                    room.news.stop()
                    try await run.sendEchoes(to: room, concurrency: concurrency)
                }
            } catch {
                await finish(run)
                throw error
            }
            await finish(run)
        }
    }

    private func finish(_ run: EchoRun) async {
        let tally = await run.finish()
        // A text that came back says all.
        let isSelfEvident = text != nil && count == 1 && tally.repliedCount == 1 && tally.inDoubtCount == 0
        if !call.quiet, !isSelfEvident { writeErrorLine("lifeline: \(tally.summary)") }
    }
}

/// Asks for echoes until all are there.
private actor EchoRun {
    private let text: String?
    private let timeout: Duration?
    private var tally: EchoTally
    private var progress: Progress

    init(count: Int, text: String?, timeout: Duration?, isQuiet: Bool) {
        self.text = text
        self.timeout = timeout
        tally = EchoTally(count: count)
        progress = Progress(verb: "replied:", noun: "calls", isQuiet: isQuiet)
    }

    /// Which echoes these messages ask for.
    @Sendable static func describe(_ messages: [SessionMessageInDoubt]) -> String {
        let numbers = messages.compactMap { message in
            (try? Sample_Room_V1_EchoRequest(serializedBytes: message.payload))?.number
        }
        return "\(numbers.count == 1 ? "call" : "\(numbers.count) calls,") \(ranges(of: numbers))"
    }

    func finish() -> EchoTally {
        if text == nil { progress.finish(count: tally.repliedCount) }
        return tally
    }

    nonisolated func sendEchoes(to room: Sample_Room_V1_RoomClient, concurrency: Int) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for _ in 0..<concurrency {
                group.addTask {
                    while let number = await self.next() {
                        try await self.replied(try await self.echo(room, for: number))
                    }
                }
            }
        }
    }

    private nonisolated func echo(
        _ room: Sample_Room_V1_RoomClient,
        for number: UInt64
    ) async throws -> Sample_Room_V1_EchoReply {
        let request = Sample_Room_V1_EchoRequest.with { ($0.number, $0.text) = (number, text ?? "") }
        while true {
            do throws(SessionError) {
                let reply = try await room.echo(request, timeout: timeout)
                if reply.number == number, reply.text == request.text { return reply }
            } catch {
                guard error.code == .sessionLost else { throw error }
                await wasInDoubt()
                continue
            }
            throw CommandFailure(
                status: .protocolBroken,
                message: "The reply to echo \(number) is another one's. Report it to who made the server."
            )
        }
    }

    private func next() -> UInt64? { Task.isCancelled ? nil : tally.next() }

    private func wasInDoubt() { tally.wasInDoubt() }

    private func replied(_ reply: Sample_Room_V1_EchoReply) async throws {
        tally.replied()
        if text == nil {
            progress.report(count: tally.repliedCount)
        } else {
            try await writeToStandardOutput(Array((reply.text + "\n").utf8))
        }
    }
}
