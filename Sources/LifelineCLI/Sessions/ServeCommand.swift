internal import ArgumentParser
internal import Lifeline
internal import LifelineCore
internal import LifelineSessionReflection
internal import Logging

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves a room: echoes, ticks, a chat. `lifeline call` calls it.",
        discussion: """
            The service is sample.room.v1.Room of Protos/sample/room/v1/room.proto. Its clients have sessions, which \
            outlive their connections: a client that loses one has two minutes, or --keep, to come back, and nothing \
            is lost. Standard error tells who joins and leaves, and what is said. A visitor whose connection is slow \
            holds nobody up. It misses messages when more than 256 wait for it.

            An interrupt (SIGINT or SIGTERM) drains: no session begins any more, clients are told to come back after a pause, \
            what they have asked for is done, for --drain seconds at most, and then the command ends. A second interrupt ends it \
            at once.

            With --record, each echo adds a line to a file before its reply is sent: the session's id and the number. The \
            file must be a regular one that only this user can open, and no symbolic link; one server records in it at a \
            time. When the server is killed and started again with the same file, that tells which echoes were handled \
            how often:
              lifeline serve --record echoes
              seq 100000 | sed 's/.*/{"number": &}/' |
                lifeline call tcp://127.0.0.1:7000 Room/Echo --data @- --concurrency 64 --retry > replies
            (meanwhile: kill -9 the server, and start it again)
              cut -d' ' -f2 echoes | sort -n | uniq -c | awk '$1 > 1'
            The last line prints the numbers of calls that were handled twice. `lifeline call` has told that these calls \
            were in doubt.

            With --store, no durable call or push is in doubt, whichever side is killed. Each durable echo adds a row to the table \
            room_echo of the file, in one transaction with its reply; no number is there twice:
              lifeline serve --store room.sqlite
              seq 100000 | sed 's/.*/{"number": &}/' |
                lifeline call tcp://127.0.0.1:7000 Room/Echo --data @- --concurrency 64 --durable calls.sqlite > replies
            (meanwhile: kill -9 the server, and start it again)
              sqlite3 room.sqlite 'SELECT number FROM room_echo GROUP BY number HAVING count(*) > 1'

            Examples:
              lifeline serve
              lifeline serve --on tcp://127.0.0.1:0                       # prints the port it got
              lifeline serve --on unix:///tmp/room.sock --drain 60
              lifeline serve --on ws://127.0.0.1:7000/room
              lifeline serve --on tls://0.0.0.0:7443 --certificate cert.pem --key key.pem
              lifeline serve --on wss://0.0.0.0:7443/room --certificate cert.pem --key key.pem --client-ca ca.pem

            Exit codes: 0 drained after an interrupt, 64 wrong usage, 65 a certificate or key that cannot be used, 69 the \
            endpoint cannot be had, 74 the record or the store cannot be used, 130 and 143 interrupted a second time.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where to listen: tcp://, tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH. Port 0 takes a free one.",
            valueName: "url"
        )
    )
    var on = defaultRoomEndpoint

    @Option(help: "Add a line to this file for each echo, before its reply.", completion: .file())
    var record: String?

    @Option(
        help: "Keep in this file what durable calls and pushes need to be handled once, whatever is killed.",
        completion: .file()
    )
    var store: String?

    @Option(help: ArgumentHelp("How long clients have for what is under way when it drains.", valueName: "seconds"))
    var drain = 10.0

    @Option(help: ArgumentHelp("Over how long clients come back that were sent away.", valueName: "seconds"))
    var spread = 1.0

    @Option(help: ArgumentHelp("How long a session is kept without a connection.", valueName: "seconds"))
    var keep = 120.0

    @OptionGroup(title: "TLS")
    var tls: ServerTLSArguments

    @Flag(help: "Do not tell who joins and leaves, and what is said.")
    var quiet = false

    @Flag(
        help: """
            Tell of sessions that begin and end: JSON objects on standard error (event, session, name). Failures are plain \
            text all the same, and lines are left out while nobody reads them.
            """
    )
    var json = false

    func validate() throws {
        try tls.validate(for: parseEndpoint(on))
        for (name, value) in [("--drain", drain), ("--spread", spread), ("--keep", keep)] {
            _ = try parseSeconds(value, of: name)
        }
    }

    func run() async throws {
        let endpoint = try parseEndpoint(on)
        let interruption = await Interruption()
        try await exitingOnFailure {
            let isQuiet = quiet || json
            let room = Room(record: try record.map(LineRecord.init(path:))) { line in
                writeError("\(line)\n")
            } printLine: { line in
                if !isQuiet { writeError("\(line)\n") }
            }
            try await withSessionServer(
                listeningOn: endpoint,
                configuration: try serverConfiguration(for: room),
                services: [room, SessionReflection(of: [room])],
                logger: Logger(label: "lifeline", factory: StandardErrorLogHandler.init)
            ) { server in
                try await writeError("listening on \(server.boundEndpoints[0])\n")
                _ = await interruption.wait()
                if !isQuiet { writeError("draining; a second interrupt ends it at once\n") }
            }
        }
    }

    private func serverConfiguration(for room: Room) throws -> SessionServerConfiguration {
        var configuration = SessionServerConfiguration()
        // Writing the record may block.
        configuration.server.handlerExecutor = .globalPool
        configuration.server.tls = tls.configuration
        configuration.store = try store.map { try DurableFile.openForRoom($0) }
        configuration.server.shutdownGracePeriod = try parseSeconds(drain, of: "--drain")
        configuration.drainSpread = try parseSeconds(spread, of: "--spread")
        configuration.keptDuration = try parseSeconds(keep, of: "--keep")
        // For each session, because all clients may be slow; all together keep at most 1 GiB.
        configuration.limits.maximumKeptByteCount = 1 << 20
        configuration.whenOpened = { [json] session, isResumed in
            if isResumed { return }
            room.joined(session)
            if json { SessionReport(event: "began", session).write() }
        }
        configuration.whenEnded = { [json] session in
            room.left(session)
            if json { SessionReport(event: "ended", session).write() }
        }
        return configuration
    }
}

/// A session's event in the output of `serve --json`.
private struct SessionReport: Encodable {
    let event: String
    let session: String
    let name: String

    init(event: String, _ session: SessionServerEnd) {
        // A client chooses its own name, and standard error may be a terminal.
        (self.event, self.session, name) = (event, session.id, session.name.escaped())
    }

    func write() {
        // Texts can always be encoded.
        try? writeErrorLine(json: self)
    }
}
