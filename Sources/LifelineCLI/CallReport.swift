internal import ArgumentParser
internal import Lifeline
internal import LifelineProtos
internal import SampleServices

struct CallReport: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Tells the server a status, which has no answer.",
        discussion: """
            The command ends when the server has processed it, which the session acknowledges. It fails with 74 when the \
            session was lost before that: nobody knows whether the server has it.

            Example:
              lifeline call report --name Ada --text "having lunch"
            """
    )

    @Option(help: "The status.")
    var text: String

    @Option(help: "Who reports.")
    var name = ""

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var call: CallOptions

    private static let forever = Duration.seconds(365 * 24 * 3600)

    func run() async throws {
        try await exitingOnFailure {
            let report = Sample_Room_V1_Status.with { $0.text = text }
            // Closing waits until the server has processed it.
            let undelivered = try await call.withRoom(name: name, closeTimeout: try timeout.duration ?? Self.forever) {
                room in
                room.news.stop()
                try await room.report(report)
            }
            if let undelivered { throw Self.failure(for: undelivered) }
        }
    }

    private static func failure(for message: SessionMessageInDoubt) -> CommandFailure {
        if message.outcome == .unsent {
            return CommandFailure(
                status: .temporary,
                message: "The report was not sent: there was no connection in time."
            )
        }
        return CommandFailure(
            status: .inputOutput,
            message: "Nobody knows whether the server has the report. Report it again; that does no harm."
        )
    }
}
