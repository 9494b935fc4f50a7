internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import LifelineMessages
internal import LifelineProtos

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Connects, and sends messages.",
        discussion: """
            Sends one text, or the ChatMessages of a delimited stream from a file or from standard input, and waits until \
            the receiver has taken them.

            Examples:
              lifeline send --to tcp://127.0.0.1:7000 --text "Hello" --from Ada
              lifeline send --to tcp://127.0.0.1:7000 --text "Hello" --count 1000
              lifeline send --to unix:///tmp/chat.sock --format delimited < chat.bin
              lifeline send --to unix:///tmp/chat.sock --file chat.bin
            """
    )

    @Option(
        help: ArgumentHelp("Where to connect: tcp://HOST:PORT or unix:///PATH.", valueName: "url"),
        transform: parseEndpoint
    )
    var to: Endpoint

    @Option(help: "Send a message with this text.")
    var text: String?

    @Option(help: "Who the text is from.")
    var from: String?

    @Option(help: "delimited: send the delimited stream on standard input.")
    var format: MessageFormat?

    @Option(help: "Send the delimited stream in this file.", completion: .file())
    var file: String?

    @Option(help: "With --text, how often to send it; with a stream, stop after this many messages.")
    var count: Int?

    func validate() throws {
        let sources = [text != nil, format != nil, file != nil].filter { $0 }.count
        guard sources == 1 else {
            throw ValidationError("Give one of --text, --format delimited with a stream on standard input, and --file.")
        }
        if format == .text { throw ValidationError("--format takes only delimited here; a text goes into --text.") }
        if from != nil, text == nil {
            throw ValidationError("--from goes with --text; a stream's messages have theirs.")
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
    }

    func run() async throws {
        signal(SIGPIPE, SIG_IGN)
        try await exitingOnFailure {
            // Bad input is reported after the graceful close, so that the messages before it arrive.
            let failure = try await withConnection(
                to: to,
                receiving: RawMessage.self,
                sending: RawMessage.self
            ) { connection in
                var sender = MessageSender(connection: connection, limit: count)
                if let text {
                    try await sender.send(text: text, from: from)
                    return nil as CommandFailure?
                }
                let input = try file.map(InputFile.init(path:)) ?? .standardInput()
                return try await sender.send(streamFrom: input)
            }
            if let failure { throw failure }
        }
    }
}
