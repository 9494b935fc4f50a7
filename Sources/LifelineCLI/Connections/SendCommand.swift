internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineProtos
internal import Logging

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Connects, and sends messages.",
        discussion: """
            Sends one text, or the ChatMessages of a delimited stream from a file or from standard input, and waits until \
            the receiver has taken them.

            A connection that is lost is made again, with 1 s, 2 s, 4 s and so on between attempts, and a line on standard \
            error for each step; where the receiver has ended it in order, they come when a message waits for a connection, or \
            at the end. Messages wait meanwhile. Those that were on their way when a connection was lost are not \
            sent again, since the receiver may have them; the last line says how many did not reach the receiver's system. \
            That is exact, and not known over tls://, ws:// and wss://; what reached it and was not read when the receiver \
            was killed, nobody here can know.

            The command succeeds when all messages were handed to a connection and the last one was closed in order, with \
            everything in the receiver's system. It fails with 69 when it has given up connecting with messages left to \
            send, or the receiver has refused this side's certificate, and with 74 when the last connection broke or the \
            receiver did not end it within 5 s.

            Over tls:// and wss:// the server's certificate must be valid, made out to HOST, and vouched for by an \
            authority of the system's or of --ca. One that is refused is not tried again. To pin the key of a certificate, take the last \
            line of
              openssl x509 -in cert.pem -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \
            | openssl base64
            and put sha256/ in front of it.

            Examples:
              lifeline send --to tcp://127.0.0.1:7000 --text "Hello" --from Ada
              lifeline send --to tcp://127.0.0.1:7000 --text "Hello" --count 1000
              lifeline send --to ws://127.0.0.1:7000/chat --text "Hello"
              lifeline send --to unix:///tmp/chat.sock --format delimited < chat.bin
              lifeline send --to unix:///tmp/chat.sock --file chat.bin
              lifeline send --to tcp://chat.example.org:7000 --text "Hello" --proxy socks5://127.0.0.1:1080
              lifeline send --to tls://chat.example.org:7443 --text "Hello" --ca ca.pem
              lifeline send --to wss://10.0.0.7:7443/chat --text "Hello" --trust-pins --pin sha256/47DEQpj8HBSa…
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where to connect: tcp:// or tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH.",
            valueName: "url"
        )
    )
    var to: String

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

    /// A minute and a half, in which a receiver is restarted by hand. Connections that last less than 10 s count, too.
    @Option(help: "How often to try to connect in a row before giving up.")
    var attempts = 8

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup(title: "TLS")
    var tls: ClientTLSArguments

    @Flag(help: "Do not tell of connections that are lost and made again.")
    var quiet = false

    func validate() throws {
        if attempts < 1 { throw ValidationError("--attempts must be at least 1.") }
        let sources = [text != nil, format != nil, file != nil].filter { $0 }.count
        guard sources == 1 else {
            throw ValidationError("Give one of --text, --format delimited with a stream on standard input, and --file.")
        }
        if format == .text { throw ValidationError("--format takes only delimited here; a text goes into --text.") }
        if from != nil, text == nil {
            throw ValidationError("--from goes with --text; a stream's messages have theirs.")
        }
        try tls.validate(for: parseEndpoint(to))
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
    }

    func run() async throws {
        try await exitingOnFailure {
            let input = try text == nil ? file.map(InputFile.init(path:)) ?? .standardInput() : nil
            try await send(input)
        }
    }

    private func send(_ input: consuming InputFile?) async throws {
        let client = Client(
            to: try parseEndpoint(to),
            configuration: try clientConfiguration,
            receiving: RawMessage.self,
            sending: RawMessage.self,
            // The watcher tells what there is to tell.
            logger: Logger(label: "lifeline") { _ in SwiftLogNoOpLogHandler() }
        )
        var sender = MessageSender(client: client, limit: count)
        let watcher = SendWatcher(client: client, isQuiet: quiet)
        async let running: Void = client.run()
        async let watching: Void = watcher.run()
        // Bad input is reported after the graceful close, so that the messages before it arrive.
        var failure: CommandFailure?
        do {
            if let text {
                try await sender.send(text: text, from: from)
            } else if let input {
                failure = try await sender.send(streamFrom: input)
            }
            // Looked up at once, before there is a later one, mostly.
            let last = client.history.last { $0.transition.to == .ready }
            await watcher.sendingFinished(lastConnection: last?.transition.number ?? 0)
        } catch let error as ConnectionError where error.code == .closedLocally {
            // The watcher has closed it, and knows why.
        }
        await client.close()
        try await running
        await watching
        try await watcher.finish(sentCount: sender.sentCount)
        if let failure { throw failure }
    }

    private var clientConfiguration: ClientConfiguration {
        get throws {
            var configuration = ClientConfiguration()
            configuration.backoff.maximumAttempts = attempts
            configuration.connection.proxy = try proxy.configuration
            configuration.connection.tls = tls.configuration
            return configuration
        }
    }
}
