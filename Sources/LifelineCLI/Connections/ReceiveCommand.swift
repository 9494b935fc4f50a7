internal import ArgumentParser
internal import Lifeline
internal import LifelineMessages
internal import Logging

struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive",
        abstract: "Listens, and prints the messages that come.",
        discussion: """
            Takes up to 10,000 connections at once. A connection that sends what is no message, or nothing for ten minutes \
            (--idle), is closed, with the reason on standard error; the others go on. Runs until --count messages \
            have come or it is interrupted.

            Examples:
              lifeline receive --on tcp://127.0.0.1:7000
              lifeline receive --on tcp://127.0.0.1:0 --count 1      (prints the port it got)
              lifeline receive --on ws://127.0.0.1:7000/chat
              lifeline receive --on unix:///tmp/chat.sock --format delimited > chat.bin
              lifeline receive --on tls://0.0.0.0:7443 --certificate cert.pem --key key.pem
              lifeline receive --on wss://0.0.0.0:7443/chat --certificate cert.pem --key key.pem --client-ca ca.pem

            For a trial, a certificate that is its own authority (send with --ca cert.pem):
              openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem \
            -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where to listen: tcp://, tls://HOST:PORT, ws:// or wss://HOST:PORT/PATH, or unix:///PATH. Port 0 takes a free one.",
            valueName: "url"
        )
    )
    var on: String

    @Option(help: "Stop after this many messages.")
    var count: Int?

    @Option(help: "text prints messages in protobuf's text format; delimited writes the frames as they came.")
    var format: MessageFormat = .text

    @Option(help: ArgumentHelp("Close connections on which nothing comes for so long; 0: never.", valueName: "seconds"))
    var idle = 600.0

    @OptionGroup(title: "TLS")
    var tls: ServerTLSArguments

    func validate() throws {
        guard idle >= 0, idle <= 1e9 else { throw ValidationError("--idle must be between 0 and 1000000000.") }
        try tls.validate(for: parseEndpoint(on))
        if let count, count < 1 { throw ValidationError("--count must be at least 1.") }
    }

    /// When enough messages have come, a sender that has sent all of its own gets a regular end; one that sends more is
    /// not waited for.
    private var serverConfiguration: ServerConfiguration {
        var configuration = ServerConfiguration()
        // Printing a batch takes a while.
        configuration.handlerExecutor = .globalPool
        configuration.tls = tls.configuration
        configuration.connection.closeTimeout = .seconds(1)
        configuration.connection.idleTimeout = idle > 0 ? .seconds(idle) : nil
        configuration.shutdownGracePeriod = .seconds(2)
        return configuration
    }

    func run() async throws {
        let endpoint = try parseEndpoint(on)
        try await exitingOnFailure {
            let printer = MessagePrinter(format: format, limit: count)
            let interruption = await Interruption()
            try await withServer(
                listeningOn: endpoint,
                configuration: serverConfiguration,
                logger: Logger(label: "lifeline", factory: StandardErrorLogHandler.init),
                receiving: RawMessage.self,
                sending: RawMessage.self
            ) { connection in
                for try await batch in connection.messages.batches { try await printer.print(batch) }
            } _: { server in
                try await writeError("listening on \(server.boundEndpoint)\n")
                try await printer.waitUntilDone(or: interruption)
            }
        }
    }
}
