internal import ArgumentParser
internal import Lifeline
internal import LifelineProtos
internal import SampleServices

struct CallTalk: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "talk",
        abstract: "Says the lines of standard input, and prints what is said in the room meanwhile, in one call.",
        discussion: """
            Prints a line for each thing that is said, one's own included: who said it, and what. At the end of \
            standard input (^D) the call ends, when everything that was said until then has come; an interrupt ends it \
            at once. Lines that come faster than they can be printed may be missing: the room keeps the newest 256 for \
            each visitor.

            `chat` does the same with a request for each line, and so can go on in another session. Here both \
            directions are one call: they go on over another connection where they were. When the session is lost, \
            because the server was restarted, the call is over, and the command fails with 74: nobody knows whether \
            the room has heard what was said last.

            Examples:
              lifeline call talk --name Ada
              date | lifeline call talk --name Clock
            """
    )

    @Option(help: "Who one is in the room.")
    var name = ""

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var call: CallOptions

    func run() async throws {
        try await exitingOnFailure {
            let timeout = try timeout.duration
            do {
                try await call.withRoom(name: name) { room in
                    // The call itself brings what is said.
                    room.news.stop()
                    try await room.talk(timeout: timeout) {
                        try await LineReader.sendAll(to: $0)
                    } receive: { news in
                        for try await item in news { try await writeToStandardOutput(Array(item.line.utf8)) }
                    }
                }
            } catch is Interrupted {
                // So one leaves.
            }
        }
    }
}
