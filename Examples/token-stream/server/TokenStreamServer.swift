internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import UnixSignals

/// Streams generated text to clients whose connections may be lost at any time.
@main struct TokenStreamServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TokenStreamServer",
        abstract: "Tells stories, token by token.",
        discussion: """
            The service is example.story.v1.Storyteller. A client that loses its connection has two minutes to come \
            back: the story goes on meanwhile, and the client gets all of it. Runs until it is interrupted.

            Example:
              TokenStreamServer
              TokenStreamServer --on tcp://127.0.0.1:0 --rate 1000
            """
    )

    @Option(help: ArgumentHelp("Where to listen: tcp:// or unix://. Port 0 takes a free one.", valueName: "url"))
    var on = "tcp://127.0.0.1:7000"

    @Option(help: ArgumentHelp("How many tokens a second each story has: 0.1 to 10000.", valueName: "number"))
    var rate = 40.0

    func validate() throws {
        guard 0.1...10_000 ~= rate else { throw ValidationError("--rate must be 0.1 to 10000.") }
    }

    func run() async throws {
        var configuration = SessionServerConfiguration()
        // A story may be long, so an interrupted server does not wait for its end.
        configuration.server.shutdownGracePeriod = .seconds(2)
        try await withSessionServer(
            listeningOn: Endpoint(on),
            configuration: configuration,
            services: [Storyteller(pause: .seconds(1 / rate))]
        ) { server in
            try await print("listening on \(server.boundEndpoints[0])")
            // Unbuffered.
            fflush(nil)
            for await _ in await UnixSignalsSequence(trapping: .sigint, .sigterm) { break }
        }
    }
}
