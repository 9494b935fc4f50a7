internal import ArgumentParser
internal import Lifeline
internal import LifelineProtos
internal import SampleServices

struct CallSayAll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "say-all",
        abstract: "Says the lines of standard input in one call, and prints the reply to all of them.",
        discussion: """
            Each line is a message of one stream, sent as it comes; empty ones are left out. At the end of standard \
            input (^D) the room replies:
              3 said, the last one as number 17

            The stream goes on over another connection where it was. When the session is lost, because the server was \
            restarted, the command fails with 74: nobody knows how many of the lines the room has heard.

            Examples:
              lifeline call say-all --name Ada
              ls | lifeline call say-all --name List --timeout 10
            """
    )

    @Option(help: "Who one is in the room.")
    var name = ""

    @OptionGroup var timeout: TimeoutOption

    @OptionGroup var call: CallOptions

    func run() async throws {
        try await exitingOnFailure {
            let timeout = try timeout.duration
            try await call.withRoom(name: name) { room in
                room.news.stop()
                let reply = try await room.sayAll(timeout: timeout) { try await LineReader.sendAll(to: $0) }
                try await writeToStandardOutput(Array("\(reply.words)\n".utf8))
            }
        }
    }
}

extension Sample_Room_V1_SayAllReply {
    fileprivate var words: String {
        count == 0 ? "nothing said" : "\(count) said, the last one as number \(lastNumber)"
    }
}
