internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import LifelineReflection

struct CallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "call",
        abstract: "Calls a method of a server of sessions, with JSON.",
        discussion: """
            Requests are JSON values, in lines or one behind the other; replies are printed as JSON lines. The server \
            describes its methods itself if it has a SessionReflection, as that of `lifeline serve` does; for others, \
            --proto names the .proto file. `lifeline list` shows which methods there are, and `lifeline describe` what \
            they take.

            All kinds of methods can be called:
              a request and a reply: each request is a call
              a request and a stream of replies: the same
              a stream of requests and a reply: requests are sent as they come
              streams both ways: the same, and replies are printed as they come
              a push to the server: each request is a push; ends when the server has processed all of them
              pushes from the server: prints them as they come; with the full name of the method, from the first one on

            Without --data, streams of requests come from standard input, and others are one request without fields. On a \
            terminal, each line that is typed is sent at once, and Ctrl-D ends the sending; a line that is wrong is told and \
            not sent, and the call goes on. Elsewhere a wrong request ends the stream behind those before it, for the server as \
            if it were complete; the command prints the replies and fails with 65.

            With --count, a method with one reply is called so often, with --concurrency calls at once; in place of the \
            replies, the command prints how long they took. Of other methods, --count is how many replies are printed.

            A connection that is lost is made again, with 0.25 s, 0.5 s and so on up to 5 s between attempts, and the \
            session goes on over it: nothing is lost, doubled or reordered. A server that was restarted does not know \
            the session any more: a new one begins, and what was sent and not answered is in doubt, since nobody knows \
            whether the old server has handled it. The command tells which requests these are, and fails with 74; with \
            --retry it makes such calls again, which is right for calls that may be handled twice.

            With --durable, calls with one reply, and pushes, are in a file before they are sent, and none is in doubt where \
            the server has a store, as `lifeline serve --store` does: each is handled once, also when either side is killed. When \
            this command is killed, or interrupted, run it again with the same file: it prints the replies to the calls of \
            the earlier run that come, beside those to its own. A call that was not answered within --timeout goes on, too.

            Examples, with `lifeline serve` in another terminal:
              lifeline call tcp://127.0.0.1:7000 Room/Echo --data '{"text": "Hello"}'
              lifeline call tcp://127.0.0.1:7000 Room/Watch --data '{"count": 5, "interval": "0.5s"}'
              lifeline call tcp://127.0.0.1:7000 Room/SayAll --name Ada --data '{"text": "one"} {"text": "two"}'
              lifeline call tcp://127.0.0.1:7000 Room/Talk --name Ada
              lifeline call tcp://127.0.0.1:7000 Room/Report --name Ada --data '{"text": "having lunch"}'
              lifeline call tcp://127.0.0.1:7000 Room/News
              lifeline call tcp://127.0.0.1:7000 Room/Echo --count 100000 --concurrency 64
              seq 1000 | sed 's/.*/{"number": &}/' | lifeline call tcp://127.0.0.1:7000 Room/Echo --data @-
              lifeline call tcp://127.0.0.1:7000 Room/Echo --count 10000 --concurrency 64 --durable calls.sqlite
            Over other transports:
              lifeline call unix:///tmp/room.sock Room/Echo
              lifeline call ws://127.0.0.1:7000/room Room/Echo
              lifeline call tls://chat.example.org:7443 Room/Echo --ca ca.pem
              lifeline call wss://10.0.0.7:7443/room Room/Echo --trust-pins --pin sha256/47DEQpj8HBSa…

            Exit codes: 0 done, 64 wrong usage, 65 bad data, 69 the server is unavailable (or no connection for \
            --give-up-after), 70 the server failed, 74 the session was lost with something in doubt (or output \
            failed), 75 no answer within --timeout, 76 the other side does not speak the session protocol, 77 the \
            server refused the session or the call, 130 and 143 interrupted.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The server: tcp:// or tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH.",
            valueName: "url"
        )
    )
    var url: String

    @Argument(help: "package.Service/Method, or the end of that.")
    var method: String

    @Option(help: ArgumentHelp("The requests: JSON, @FILE, or @- for standard input.", valueName: "json"))
    var data: String?

    @Option(help: ArgumentHelp("Send this beside each request. May be given several times.", valueName: "key=value"))
    var metadata: [String] = []

    @Option(
        help: ArgumentHelp(
            "How long a call may take, with the wait for a connection. Without it: as long as it takes.",
            valueName: "seconds"
        )
    )
    var timeout: Double?

    @Option(help: "Call so often, and print how long it took; of streams: print so many replies.")
    var count: Int?

    @Option(help: "How many calls of a method with one reply are made at once. Default: 1.")
    var concurrency: Int?

    @Flag(help: "Make calls that are in doubt again.")
    var retry = false

    @Option(
        help: "Keep calls with one reply, and pushes, in this file until the server has handled them.",
        completion: .file()
    )
    var durable: String?

    @Flag(help: "Print how long calls took as JSON, in seconds.")
    var json = false

    @Flag(help: "Pass over fields that the request does not have, and names of enum values that it does not know.")
    var ignoreUnknown = false

    @OptionGroup(title: "Schema") var schema: SchemaOptions

    @OptionGroup var jsonFlags: JSONFlags

    @OptionGroup var limit: MessageLimit

    @OptionGroup(title: "Connection") var session: SessionArguments

    func validate() throws {
        try session.tls.validate(for: parseEndpoint(url))
        _ = try timeLimit
        _ = try parsedMetadata
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
        // More calls would only wait for each other.
        guard (1...1024).contains(concurrency ?? 1) else { throw ValidationError("--concurrency must be 1 to 1024.") }
        if json, count == nil {
            throw ValidationError("--json goes with --count, which measures how long the calls take.")
        }
    }

    private var timeLimit: Duration? { get throws { try timeout.map { try parseSeconds($0, of: "--timeout") } } }

    private var parsedMetadata: SessionMetadata {
        get throws {
            var result: SessionMetadata = [:]
            for entry in metadata {
                guard let separator = entry.firstIndex(of: "=") else {
                    throw ValidationError("--metadata takes KEY=VALUE, as in --metadata tenant=acme.")
                }
                result[String(entry[..<separator])] = String(entry[separator...].dropFirst())
            }
            return result
        }
    }

    func run() async throws {
        try await exitingOnFailure {
            let endpoint = try parseEndpoint(url)
            let local = try schema.load().map { Schema($0) }
            let store = try durable.map { try DurableFile.open($0, forClientOf: endpoint) }
            let (kind, undelivered) = try await session.withSession(
                to: endpoint,
                frameLimit: limit.ofSessions,
                store: store
            ) { client in
                // Pushes that arrive before they are asked for would be refused.
                let pushes = client.pushes(method, of: RawMessage.self)
                let schema = if let local { local } else { try await Schema(describedBy: client) }
                let method = try schema.method(named: method)
                try checkOptions(for: method)
                try await call(method, in: schema, over: client, pushes)
                return method.kind
            }
            // Other kinds of calls have failed, or were repeated.
            if kind == .push, let undelivered { throw Self.failure(for: undelivered) }
        }
    }

    /// Refuses options that do not apply to this kind of method.
    private func checkOptions(for method: Schema.Method) throws(CommandFailure) {
        let sending: [Schema.Method.Kind] = [.unary, .serverStream, .clientStream, .bothWays, .push]
        let options: [(name: String, isGiven: Bool, kinds: [Schema.Method.Kind])] = [
            ("--count", count != nil, [.unary, .serverStream, .bothWays, .serverPush]),
            ("--json", json, [.unary]),
            ("--concurrency", concurrency != nil, [.unary]),
            ("--retry", retry, [.unary]),
            ("--durable", durable != nil, [.unary, .push]),
            ("--data", data != nil, sending),
            ("--metadata", !metadata.isEmpty, sending),
            ("--ignore-unknown", ignoreUnknown, sending),
            ("--timeout", timeout != nil, sending),
            ("--all-fields", jsonFlags.allFields, [.unary, .serverStream, .clientStream, .bothWays, .serverPush]),
            ("--proto-names", jsonFlags.protoNames, [.unary, .serverStream, .clientStream, .bothWays, .serverPush]),
        ]
        guard let option = options.first(where: { $0.isGiven && !$0.kinds.contains(method.kind) }) else { return }
        throw CommandFailure(
            status: .usage,
            message: "\(option.name) goes with methods of the kind \(list(option.kinds.map(\.rawValue), "or")); "
                + "\(method.name) is of the kind \(method.kind.rawValue)."
        )
    }

    private func call(
        _ method: Schema.Method,
        in schema: Schema,
        over client: SessionClient,
        _ pushes: SessionPushes<RawMessage>
    ) async throws {
        let limit = limit.ofConnections
        let replies = method.reply.map {
            MessageTextEncoder($0, .json, in: schema.pool, json: jsonFlags, limit: limit)
        }
        let caller = MethodCaller(
            client: client,
            method: method.name,
            timeout: try timeLimit,
            metadata: try parsedMetadata,
            delivery: durable == nil ? .reliable : .durable,
            replies: replies ?? .fieldNumbers(limit: limit)
        )
        let requests = CallRequests(
            method,
            in: schema,
            from: data.map(RequestText.init),
            ignoresUnknown: ignoreUnknown,
            limit: limit
        )
        if method.kind != .serverPush { pushes.stop() }
        switch method.kind {
        case .unary:
            if let count { return try await measure(count, requests, caller) }
            try await caller.calls(requests, concurrency: concurrency ?? 1, retries: retry)
        case .serverStream: try await caller.serverStreams(requests, maximumCount: count)
        case .clientStream: try await caller.clientStream(requests)
        case .bothWays: try await caller.bothWays(requests, maximumCount: count)
        case .push:
            guard try await within(try timeLimit, { try await caller.pushes(requests) }) != nil else {
                throw CommandFailure(
                    status: .temporary,
                    message: "The server has not processed everything within --timeout."
                )
            }
        case .serverPush:
            let isRegistered = method.name == self.method
            let pushes = isRegistered ? pushes : client.pushes(method.name, of: RawMessage.self)
            try await caller.print(pushes, maximumCount: count)
        }
    }

    private func measure(_ count: Int, _ requests: CallRequests, _ caller: MethodCaller) async throws {
        let start = ContinuousClock.now
        let tally = try await caller.measure(count, requests, concurrency: concurrency ?? 1, retries: retry)
        let duration = start.duration(to: .now)
        let line =
            json ? try jsonLine(tally.report(duration: duration)) : Array(tally.summary(duration: duration).utf8)
        try await OutputFile.standardOutput.write(line + [UInt8(ascii: "\n")])
        if tally.inDoubtCount > 0, !retry {
            throw CommandFailure(
                status: .inputOutput,
                message: "Nobody knows whether the server has handled \(tally.inDoubtCount) of the calls."
            )
        }
    }

    private static func failure(for message: SessionMessageInDoubt) -> CommandFailure {
        if message.outcome == .unsent {
            return CommandFailure(
                status: .temporary,
                message: "Not everything was sent: there was no connection in time."
            )
        }
        return CommandFailure(
            status: .inputOutput,
            message: "Nobody knows whether the server has handled everything, since the session was lost."
        )
    }
}
