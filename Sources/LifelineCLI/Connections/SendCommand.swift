internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineReflection
internal import Logging

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send",
        abstract: "Connects, and sends messages of any type.",
        discussion: """
            Reads messages from a file or from standard input, sends them, and waits until the receiver has taken them. \
            The input is what `lifeline decode` prints: JSON objects, or text format with a line --- after each message. \
            The types come from --proto or --descriptor-set, and --type names the type of the messages. With --format \
            delimited the input is a delimited stream, which is sent as it is, and needs no type.

            A connection that is lost is made again, with 1 s, 2 s, 4 s and so on between attempts, and a line on standard \
            error for each step; where the receiver has ended it in order, they come when a message waits for a connection, or \
            at the end. Messages wait meanwhile. Those that were on their way when a connection was lost are not \
            sent again, since the receiver may have them; the last line says how many did not reach the receiver's system. \
            That is exact, and not known over tls://, ws:// and wss://; what reached it and was not read when the receiver \
            was killed, nobody here can know.

            The command succeeds when all messages were handed to a connection and the last one was closed in order, with \
            everything in the receiver's system. With --both it prints the messages that come back, until the receiver \
            ends the connection, there are --replies of them, the time of --for is over, or it is interrupted.

            With --json, the last lines on standard error are an object with the counts received and leftOut, where \
            there is --both, and one with sent, lostConnections and, where that is known, undelivered.

            Over tls:// and wss:// the server's certificate must be valid, made out to HOST, and vouched for by an \
            authority of the system's or of --ca. One that is refused is not tried again. To pin the key of a certificate, take the last \
            line of
              openssl x509 -in cert.pem -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \
            | openssl base64
            and put sha256/ in front of it.

            Examples, where a schema is given by --proto chat.proto --type ChatMessage:
              lifeline send --to tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage --data '{"text": "Hello"}'
              lifeline send --to ws://127.0.0.1:7000/chat --proto chat.proto --type ChatMessage messages.json
              lifeline send --to unix:///tmp/chat.sock --format delimited < chat.binpb
              lifeline send --to tls://chat.example.org:7443 --ca ca.pem --format delimited chat.binpb
              lifeline send --to wss://10.0.0.7:7443/chat --trust-pins --pin sha256/47DEQpj8HBSa… --format delimited chat.binpb
              lifeline send --to tcp://chat.example.org:7000 --proxy socks5://127.0.0.1:1080 --format delimited chat.binpb
              lifeline send --to tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage --both --replies 1 \
            --data '{"text": "Hello"}'

            Exit codes: 0 done, 64 wrong usage, 65 bad data or a schema, certificate or key that cannot be used, 69 given up \
            connecting with messages left to send, a certificate refused, or protoc cannot be run, 74 input or output failed, \
            the last connection broke, or the receiver did not end it within 5 s.
            """
    )

    @Argument(help: "The messages. Default: standard input.", completion: .file())
    var file: String?

    @Option(
        help: ArgumentHelp(
            "Where to connect: tcp:// or tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH.",
            valueName: "url"
        )
    )
    var to: String

    @OptionGroup var exchange: ExchangeOptions

    @Option(help: ArgumentHelp("Send this message, in place of a file's.", valueName: "json"))
    var data: String?

    @Option(help: "With --data, how often to send it; with a file, stop after this many messages.")
    var count: Int?

    @Option(help: "What the file is: json, text or delimited. Default: json.")
    var format: MessageFormat?

    @Flag(help: "Pass over fields that the type does not have, and names of enum values that it does not know.")
    var ignoreUnknown = false

    @OptionGroup(title: "Replies") var replies: ReplyOptions

    /// A minute and a half, enough to restart a receiver by hand. Connections that last less than 10 s count, too.
    @Option(help: "How often to try to connect in a row before giving up.")
    var attempts = 8

    @OptionGroup(title: "TLS") var tls: ClientTLSArguments

    func validate() throws {
        try tls.validate(for: parseEndpoint(to))
        try exchange.framing.validate(with: exchange.heartbeat)
        if attempts < 1 { throw ValidationError("--attempts must be at least 1.") }
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        if data != nil, file != nil || format != nil {
            throw ValidationError("--data gives the message as JSON, so that no FILE and no --format goes with it.")
        }
        if exchange.type == nil, format != .delimited {
            throw ValidationError(
                """
                JSON and text need the type of the messages:
                  lifeline send --to \(to) --proto FILE --type NAME …
                A stream of delimited messages does not:
                  lifeline send --to \(to) --format delimited …
                """
            )
        }
    }

    func run() async throws {
        try await exitingOnFailure {
            switch exchange.framing.framing {
            case .delimited: try await send(through: .delimited)
            case .fixedHeader: try await send(through: exchange.framing.fixedHeaderCarrier)
            case .headLine: try await send(through: exchange.framing.headLineCarrier)
            }
        }
    }

    private func send<Received, Sent>(through carrier: Carrier<Received, Sent>) async throws {
        let pool = try exchange.schema.load()
        let source = try source(in: pool)
        let printer = try replies.printer(
            in: pool,
            of: exchange.type,
            limit: exchange.limit,
            isQuiet: exchange.steps.quiet
        )
        let endpoint = try parseEndpoint(to)
        let configuration = try exchange.clientConfiguration(attempts: attempts, tls: tls.configuration)
        let client = try exchange.client(to: endpoint, configuration, carrier, in: pool)
        let words = StepWords(for: endpoint, configuration, isVerbose: exchange.steps.verbose)
        let watcher = SendWatcher(
            client: client,
            words: words,
            isQuiet: exchange.steps.quiet,
            endsWithPeer: replies.both
        )
        let (isBoth, isQuiet, duration) = (replies.both, exchange.steps.quiet, replies.duration)
        async let running: Void = client.run()
        let sending = Task<(Int, CommandFailure?), any Error> {
            var sender = MessageSender(client: client, wrap: carrier.wrap, isQuiet: isQuiet || isBoth)
            // Bad input is reported after the graceful close, so that the messages before it arrive.
            var failure: CommandFailure?
            do {
                failure = try await sender.send(source)
                // Looked up at once, mostly before there is a later one.
                let last = client.history.last { $0.transition.to == .ready }
                await watcher.sendingFinished(lastConnection: last?.transition.number ?? 0)
                if !isBoth { await client.close() }
            } catch let error as ConnectionError where error.code == .closedLocally {
                // The watcher has closed the client, and knows the reason.
            } catch is CancellationError {
                // The client has given up, or there are enough replies.
            }
            return (sender.sentCount, failure)
        }
        let interruption = isBoth ? await Interruption() : nil
        let stopping = Task {
            guard let printer, let interruption else { return }
            let result = await Result.of { try await printer.commandEnd.wait(or: interruption, within: duration) }
            sending.cancel()
            await watcher.stop()
            try result.get()
        }
        defer {
            sending.cancel()
            stopping.cancel()
        }
        let peer = endpoint.name
        async let receiving: Void = client.printMessages(with: printer, from: peer)
        await watcher.run()
        // Otherwise the input is read to its end, which may come before the connection's.
        if isBoth { sending.cancel() }
        let (sentCount, failure) = try await sending.value
        try await running
        await receiving
        stopping.cancel()
        try await printer?.reportEnd(isJSON: exchange.json)
        try await stopping.value
        try await watcher.finish(sentCount: sentCount, isJSON: exchange.json)
        if let failure { throw failure }
        printer?.finishOutput()
    }

    private func source(in pool: DescriptorPool?) throws(CommandFailure) -> MessageSource {
        let type = try pool.messageType(named: exchange.type)
        let byteLimit = exchange.limit.ofConnections
        if let data, let (type, pool) = type {
            let message = try RawMessage(
                json: data,
                from: "--data",
                of: type,
                in: pool,
                ignoresUnknown: ignoreUnknown,
                limit: byteLimit
            )
            return .example(message, count: count ?? 1)
        }
        let input = try file.map(InputFile.init(path:)) ?? .standardInput()
        guard let (type, pool) = type, let form = (format ?? .text(.json)).textForm else {
            let decoder = type.map { TypedDecoder($0.type, limit: byteLimit) }
            return .delimited(input, checking: decoder, limit: count, byteLimit: byteLimit)
        }
        let decoder = MessageTextDecoder(
            type,
            in: pool,
            from: form,
            ignoresUnknown: ignoreUnknown,
            limit: byteLimit
        )
        return .text(input, decoder, limit: count, byteLimit: byteLimit)
    }
}

extension Client where Received: CarriedContent {
    /// Prints the received messages until the client is closed, or drops them if there is no printer.
    fileprivate func printMessages(with printer: MessagePrinter?, from peer: String) async {
        if let printer {
            await printer.printMessages(of: self, from: peer)
        } else {
            await dropMessages()
        }
    }
}
