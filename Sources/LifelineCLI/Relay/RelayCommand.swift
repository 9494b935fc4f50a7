internal import ArgumentParser
internal import Lifeline
internal import LifelineCore
internal import LifelineMessages
internal import LifelineOlderFramings
internal import Logging

struct RelayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay",
        abstract: "Passes connections on to a server, and shows the messages in both directions.",
        discussion: """
            Clients connect to --listen instead of to their server, and the relay connects to --to for each of them. Every \
            message is passed on as it came, and shown decoded: → stands for those to the server, ← for those from it, \
            and #1 for the first connection. What cannot be decoded is shown as such and passed on all the same. The types \
            come from --proto or --descriptor-set; without --type, fields are shown by their numbers.

            When standard output is no terminal, each message is a JSON object in a line (--format): time in seconds \
            since the relay has begun, connection, direction (toServer or toClient), and message; fields in place of \
            message, by their numbers as text, without a type; error and frame (Base64) where it cannot be decoded.

            One side is held up while the other one does not read, and both while standard output is not read. When one \
            side ends in order, so does the other one. When one is lost, or ends inside a message, the other one is cut \
            after what came before was delivered, or when it has taken nothing for three minutes: over TCP its peer sees \
            a reset. A Unix socket has none: there the peer sees an end. When the server cannot be reached, the client is cut. Standard error tells of it.

            --record adds each message to a file, before it is passed on: a JSON object in a line, with time, connection, \
            direction and frame, the encoded message in Base64. What the file has already stays, and connections \
            are numbered on. It has all that the messages have, passwords and the tokens of sessions, too: it must be a \
            regular file that only this user can open, and no symbolic link; one relay records in it at a time. \
            `lifeline replay` prints such a file, and sends it again.

            An interrupt (SIGINT or SIGTERM) cuts all connections. A second one, while that takes its time, ends the \
            command at once.

            Sessions pass as well: they are messages of the type lifeline.session.v1.Frame, which the schema \
            Protos/lifeline/session/v1/session.proto of Lifeline declares.

            Examples:
              lifeline relay --listen tcp://127.0.0.1:7001 --to tcp://127.0.0.1:7000      # by field numbers
              lifeline relay --listen tcp://127.0.0.1:7001 --to tcp://127.0.0.1:7000 --proto chat.proto --type ChatMessage
              lifeline relay --listen tcp://127.0.0.1:7001 --to tls://chat.example.org:7443 --ca ca.pem --record chat.jsonl
              lifeline relay --listen tcp://127.0.0.1:7001 --to tcp://127.0.0.1:7000 | jq 'select(.direction == "toClient")'
            What `lifeline call` and `lifeline serve` say to each other, in three terminals:
              lifeline serve
              lifeline relay --listen tcp://127.0.0.1:7001 --to tcp://127.0.0.1:7000 \
            --proto lifeline/session/v1/session.proto -I Protos --type lifeline.session.v1.Frame
              lifeline call tcp://127.0.0.1:7001 Room/Echo --data '{"text": "Hello"}'

            Exit codes: 0 interrupted, 64 wrong usage, 65 a schema, certificate or key that cannot be used, or a \
            --record file that is not a record, 69 the endpoint of --listen is in use, or protoc cannot be run, 74 output failed, or the record \
            cannot be used, 130 and 143 interrupted a second time.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where clients connect: tcp://, tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH. Port 0 takes a free one.",
            valueName: "url"
        )
    )
    var listen: String

    @Option(help: ArgumentHelp("The server.", valueName: "url"))
    var to: String

    @OptionGroup var types: TrafficTypes

    @Option(help: "lines or json. Default: lines on a terminal, json elsewhere.")
    var format: TrafficFormat?

    @Option(help: "Add each message to this file.", completion: .file())
    var record: String?

    @OptionGroup var limit: MessageLimit

    @Option(help: "How messages are marked off: delimited, fixed-header or head-line.")
    var framing = FramingName.delimited

    @OptionGroup var proxy: ProxyOptions

    @OptionGroup(title: "TLS, with clients") var identity: TLSIdentityArguments
    @OptionGroup(title: "TLS, with clients") var clients: TLSClientsArguments
    @OptionGroup(title: "TLS, with the server") var trust: TLSTrustArguments

    @OptionGroup var steps: StepOptions

    func validate() throws {
        let (listen, to) = (try parseEndpoint(listen), try parseEndpoint(to))
        try clients.validate(with: identity, for: listen)
        if listen.reaches(to) {
            throw ValidationError("--listen and --to are the same: the relay would connect to itself.")
        }
        if trust.isGiven, !to.isEncrypted {
            throw ValidationError("--pin and --ca are for a server tls:// or wss://.")
        }
        if record != nil, framing != .delimited {
            throw ValidationError("--record goes with --framing delimited, which needs no heads.")
        }
    }

    func run() async throws {
        try await exitingOnFailure {
            switch framing {
            case .delimited: try await relay(RawMessage.self, RawMessage.self)
            case .fixedHeader: try await relay(FixedHeaderRequest.self, FixedHeaderResponse.self)
            case .headLine: try await relay(HeadLineMessage.self, HeadLineMessage.self)
            }
        }
    }

    private func relay<Request: CarriedContent, Reply: CarriedContent>(
        _ request: Request.Type,
        _ reply: Reply.Type
    ) async throws {
        let output = OutputFile.standardOutput
        let text = try types.text(format, to: output, limit: limit.ofConnections)
        let traffic = Traffic(text: text, output: output)
        var configuration = ConnectionConfiguration()
        configuration.maximumFrameLength = limit.ofConnections
        configuration.keepalive = .ofSlowReaders
        configuration.proxy = try proxy.configuration
        // The relay's own certificate is only for its clients.
        configuration.tls = trust.configuration(showing: nil)
        let isQuiet = steps.quiet
        let relay = Relay<Request, Reply>(
            to: try parseEndpoint(to),
            configuration: configuration,
            traffic: traffic,
            isVerbose: steps.verbose
        ) { line in
            if !isQuiet { tellStep(line) }
        }
        let interruption = await Interruption()
        do {
            try await withServer(
                listeningOn: try parseEndpoint(listen),
                configuration: serverConfiguration,
                logger: Logger(label: "lifeline") { ReceiverLogHandler(label: $0, isQuiet: isQuiet) },
                receiving: request,
                sending: reply
            ) { client in
                try await relay.carry(client)
            } _: { [record] server in
                // Not before it listens, so that a relay that cannot listen leaves no record.
                try await traffic.begin(recordingIn: record)
                try await writeError("listening on \(server.boundEndpoint)\n")
                try await traffic.commandEnd.wait(or: interruption, within: nil)
                if !isQuiet { tellStep("the relay ends") }
                // Cuts the connections, so that no side mistakes this for the other side's end.
                throw RelayEnd()
            }
        } catch is RelayEnd {
        } catch let error as ConnectionError {
            throw StepWords(peer: "it", isVerbose: steps.verbose).failure(for: error)
        }
    }

    private var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        // Showing a batch takes a while.
        configuration.handlerExecutor = .globalPool
        configuration.tls = clients.configuration(showing: identity)
        configuration.connection.maximumFrameLength = limit.ofConnections
        configuration.connection.keepalive = .ofSlowReaders
        return configuration
    }
}

/// The user has ended the relay.
private struct RelayEnd: Error {}

extension Endpoint {
    /// Returns whether connections to `other` reach a server that listens here, as far as the hosts show: at the same
    /// address, or at any address of this host.
    fileprivate func reaches(_ other: Endpoint) -> Bool {
        guard case .tcp(let host, let port) = address, case .tcp(let otherHost, port) = other.address, port != 0 else {
            return address == other.address
        }
        // A socket of an IPv4 address accepts no IPv6 connections. A name may have addresses of both.
        let isOtherVersion = IPAddress(host) != nil && !host.contains(":") && otherHost.contains(":")
        return host == otherHost || !isOtherVersion && Self.isThisHost(host) && Self.isThisHost(otherHost)
    }

    private static func isThisHost(_ host: String) -> Bool {
        guard let address = IPAddress(host) else { return host == "localhost" }
        return address.isLoopback || address.isUnspecified
    }
}
