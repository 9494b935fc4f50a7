internal import ArgumentParser
internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineOlderFramings
internal import LifelineReflection
internal import Logging

struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive",
        abstract: "Listens, or connects to a server, and prints the messages that come.",
        discussion: """
            Prints JSON lines or text format, as `lifeline decode` does for files. The types come from --proto or \
            --descriptor-set, and --type names the type of the messages. Without them, fields are shown by their numbers. \
            With --format delimited messages are written as they came.

            With --on it takes up to 10,000 connections at once. A connection that sends what is no message, or nothing \
            for ten minutes (--idle), is closed, with the reason on standard error; the others go on.

            With --to it connects to a server that listens. A connection that is lost is made again, with 1 s, 2 s, 4 s and \
            so on between attempts, and a line on standard error for each step. What is no message ends the command.

            With --json, the last line on standard error is an object with the counts received and leftOut.

            It runs until --count messages have come, the time of --for is over, or it is interrupted; with --to also until \
            all --attempts to connect are used up.

            Examples:
              lifeline receive --on tcp://127.0.0.1:7000                  # by field numbers
              lifeline receive --on tcp://127.0.0.1:0 --count 1           # prints the port it got
              lifeline receive --on ws://127.0.0.1:7000/chat --proto chat.proto --type ChatMessage
              lifeline receive --on unix:///tmp/chat.sock --format delimited --output chat.binpb
              lifeline receive --on tls://0.0.0.0:7443 --certificate cert.pem --key key.pem
              lifeline receive --on wss://0.0.0.0:7443/chat --certificate cert.pem --key key.pem --client-ca ca.pem
              lifeline receive --to tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage --for 10

            For a trial, a certificate that is its own authority (send with --ca cert.pem):
              openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem \
            -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1

            Exit codes: 0 done, 64 wrong usage, 65 bad data or a schema, certificate or key that cannot be used, 69 the \
            endpoint is in use, the server cannot be reached, a certificate refused, or protoc cannot be run, 74 input or \
            output failed, 130 and 143 interrupted a second time.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where to listen: tcp://, tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH. Port 0 takes a free one.",
            valueName: "url"
        )
    )
    var on: String?

    @Option(help: ArgumentHelp("Where to connect, instead of listening.", valueName: "url"))
    var to: String?

    @OptionGroup var exchange: ExchangeOptions

    @Option(help: "json, text or delimited. Default: json, and text by field numbers without --type.")
    var format: MessageFormat?

    @Option(help: "Stop after this many messages.")
    var count: Int?

    @OptionGroup var printing: PrintingOptions

    @Option(
        help: ArgumentHelp(
            "With --on, close connections on which nothing comes for so long; 0: never. Default: 600.",
            valueName: "seconds"
        )
    )
    var idle: Double?

    @Option(help: "With --to, how often to try to connect in a row before giving up. Default: 8.")
    var attempts: Int?

    @OptionGroup(title: "TLS") var identity: TLSIdentityArguments
    @OptionGroup(title: "TLS, with --to") var trust: TLSTrustArguments
    @OptionGroup(title: "TLS, with --on") var clients: TLSClientsArguments

    func validate() throws {
        switch (on, to) {
        case (let on?, nil): try validateListening(on: parseEndpoint(on))
        case (nil, let to?): try validateConnecting(to: parseEndpoint(to))
        default:
            throw ValidationError(
                """
                Give --on to listen, or --to to connect to a server that listens:
                  lifeline receive --on tcp://127.0.0.1:7000
                  lifeline receive --to tcp://127.0.0.1:7000
                """
            )
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        if exchange.type == nil, format == .text(.json) {
            throw ValidationError(
                """
                JSON needs the type of the messages:
                  lifeline receive --on URL --proto FILE --type NAME …
                """
            )
        }
    }

    private func validateListening(on endpoint: Endpoint) throws {
        guard idleSeconds >= 0, idleSeconds <= 1e9 else {
            throw ValidationError("--idle must be between 0 and 1000000000.")
        }
        try clients.validate(with: identity, for: endpoint)
        if attempts != nil || exchange.heartbeat.isGiven || exchange.proxy.proxy != nil || exchange.proxy.noProxy
            || trust.isGiven
        {
            throw ValidationError("--attempts, --heartbeat, --proxy, --pin and --ca are for --to.")
        }
    }

    private func validateConnecting(to endpoint: Endpoint) throws {
        if let attempts, attempts < 1 { throw ValidationError("--attempts must be at least 1.") }
        try trust.validate(with: identity, for: endpoint)
        try exchange.framing.validate(with: exchange.heartbeat)
        if clients.clientCA != nil || idle != nil { throw ValidationError("--client-ca and --idle are for --on.") }
    }

    private var idleSeconds: Double { idle ?? 600 }

    func run() async throws {
        try await exitingOnFailure {
            let pool = try exchange.schema.load()
            let printer = try printing.printer(
                format,
                of: try pool.messageType(named: exchange.type),
                count: count,
                limit: exchange.limit,
                isQuiet: exchange.steps.quiet
            )
            switch exchange.framing.framing {
            case .delimited: try await receive(printer, pool, .delimited, RawMessage.self, RawMessage.self)
            case .fixedHeader:
                let (carrier, request) = (exchange.framing.fixedHeaderCarrier, FixedHeaderRequest.self)
                try await receive(printer, pool, carrier, request, FixedHeaderResponse.self, .fixedHeader)
            case .headLine:
                let carrier = exchange.framing.headLineCarrier
                try await receive(printer, pool, carrier, HeadLineMessage.self, HeadLineMessage.self)
            }
        }
    }

    /// - Parameters:
    ///   - carrier: the framing, for a client.
    ///   - request: the type that a server receives in this framing.
    ///   - response: the type that a server sends in this framing.
    ///   - heartbeat: the heartbeat of the framing itself, for a server.
    private func receive<Received, Sent, Request: CarriedContent, Response: DelimitedMessage>(
        _ printer: MessagePrinter,
        _ pool: DescriptorPool?,
        _ carrier: Carrier<Received, Sent>,
        _ request: Request.Type,
        _ response: Response.Type,
        _ heartbeat: HeartbeatMessages<Request, Response>? = nil
    ) async throws {
        if let on {
            try await listen(on: parseEndpoint(on), printer, request, response, heartbeat)
        } else if let to {
            try await connect(to: parseEndpoint(to), printer, pool, carrier)
        }
        printer.finishOutput()
        try await printer.reportEnd(isJSON: exchange.json)
    }

    // MARK: Listening

    private func listen<Request: CarriedContent, Response: DelimitedMessage>(
        on endpoint: Endpoint,
        _ printer: MessagePrinter,
        _ request: Request.Type,
        _ response: Response.Type,
        _ heartbeat: HeartbeatMessages<Request, Response>?
    ) async throws {
        let interruption = await Interruption()
        let words = StepWords(peer: "it", isVerbose: exchange.steps.verbose)
        do {
            try await withServer(
                listeningOn: endpoint,
                configuration: serverConfiguration,
                logger: Logger(label: "lifeline") { [exchange] in
                    ReceiverLogHandler(label: $0, isQuiet: exchange.steps.quiet)
                },
                receiving: request,
                sending: response,
                heartbeat: heartbeat
            ) { connection in
                do {
                    try await printer.printMessages(of: connection)
                } catch let error as ConnectionError {
                    throw ConnectionProblem(description: words.problem(of: error))
                } catch let error where error is CancellationError || error is CommandFailure {
                    // The command ends, and reports the reason.
                    throw ConnectionProblem.told
                }
            } _: { [printing] server in
                try await writeError("listening on \(server.boundEndpoint)\n")
                try await printer.commandEnd.wait(or: interruption, within: printing.duration)
            }
        } catch let error as ConnectionError {
            throw words.failure(for: error)
        }
    }

    /// When there are enough messages, a sender that has sent all of its own gets a regular end; the command does not
    /// wait for one that sends more.
    private var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        // Printing a batch takes a while.
        configuration.handlerExecutor = .globalPool
        configuration.tls = clients.configuration(showing: identity)
        configuration.connection.maximumFrameLength = exchange.limit.ofConnections
        configuration.connection.closeTimeout = .seconds(1)
        configuration.connection.idleTimeout = idleSeconds > 0 ? .seconds(idleSeconds) : nil
        configuration.shutdownGracePeriod = .seconds(2)
        return configuration
    }

    // MARK: Connecting

    private func connect<Received, Sent>(
        to endpoint: Endpoint,
        _ printer: MessagePrinter,
        _ pool: DescriptorPool?,
        _ carrier: Carrier<Received, Sent>
    ) async throws {
        var configuration = try exchange.clientConfiguration(
            attempts: attempts ?? 8,
            tls: trust.configuration(showing: identity.identity)
        )
        configuration.connection.closeTimeout = .seconds(1)
        let client = try exchange.client(to: endpoint, configuration, carrier, in: pool)
        let interruption = await Interruption()
        let words = StepWords(for: endpoint, configuration, isVerbose: exchange.steps.verbose)
        let events = client.events
        async let running: Void = client.run()
        async let following = client.follow(events, in: words, isQuiet: exchange.steps.quiet)
        async let printingMessages: Void = printer.printMessages(of: client, from: endpoint.name)
        let result = await Result.of {
            try await printer.commandEnd.wait(or: interruption, within: printing.duration)
        }
        await client.close()
        try await running
        await printingMessages
        let failure = await following
        try result.get()
        if let failure { throw failure }
    }
}

extension MessagePrinter {
    /// Prints all messages of a server's connection.
    fileprivate nonisolated func printMessages(
        of connection: Connection<some CarriedContent, some DelimitedMessage>
    ) async throws {
        var count = 0
        for try await batch in connection.messages.batches {
            try await print(batch, after: count, of: "it")
            count += batch.count
        }
    }
}

extension Client {
    /// Reports the steps of a client that receives. Closes it when no connection can be expected, or the server has
    /// sent a malformed message.
    ///
    /// - Returns: the reason for which the command fails; nil if the server has ended the connection in order.
    fileprivate func follow(_ events: ClientEvents, in words: StepWords, isQuiet: Bool) async -> CommandFailure? {
        var failure: CommandFailure?
        for await event in events {
            if !isQuiet, let line = words.line(for: event) { tellStep(line) }
            let (transition, reason) = (event.transition, event.transition.reason)
            if transition.from == .ready, reason.error?.code == .protocolViolation, let error = reason.error {
                failure = words.failure(for: error)
                await close()
            } else if transition.to == .gaveUp {
                failure = reason.isOrderlyEnd ? nil : words.failure(forGivingUp: reason)
                await close()
            }
        }
        return failure
    }
}
