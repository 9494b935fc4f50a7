internal import ArgumentParser
internal import Glibc
internal import Lifeline
internal import Logging
internal import TokenStreamProtos

/// Prints a story as it arrives, over one connection after another.
@main struct TokenStreamClient: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "TokenStreamClient",
        abstract: "Prints a story, token by token, however often its connection is cut.",
        discussion: """
            The story is one call. When the connection is lost, the session makes another one, and the stream goes on \
            there: no token is lost, none comes twice. With --cut-every, the client puts a relay between itself and \
            the server, which cuts the connection again and again.

            Standard output gets the story and nothing else. The last line, on standard error, counts:
              300 tokens over 16 connections: none lost, none repeated
            On a terminal, [2] stands where the second connection begins, and so on.

            The client may be started before the server, and waits for it.

            Examples:
              TokenStreamClient
              TokenStreamClient --cut-every 20
              TokenStreamClient --cut-every 20 --seed 7 --tokens 1000 > story.txt

            Exit codes: 0 every token came once, 1 one was lost or repeated, or the server failed, 64 wrong usage.
            """
    )

    @Option(help: ArgumentHelp("Where the server listens: tcp:// or unix://.", valueName: "url"))
    var to = "tcp://127.0.0.1:7000"

    @Option(help: ArgumentHelp("How long the story is, in tokens: 1 to 1000000.", valueName: "number"))
    var tokens: UInt32 = 300

    @Option(help: ArgumentHelp("Which story. The same number tells the same one.", valueName: "number"))
    var seed: UInt64 = 1

    /// At least 5, because the session itself sends messages at the beginning of a connection.
    @Option(
        help: ArgumentHelp(
            "Cut the connection after every so many messages of the server, 5 at least. A token is one message.",
            valueName: "number"
        )
    )
    var cutEvery: Int?

    @Option(help: ArgumentHelp("Give up when the story is not complete after so long.", valueName: "seconds"))
    var timeout = 300.0

    @Flag(help: "Print the story alone.")
    var quiet = false

    func validate() throws {
        guard 1...1_000_000 ~= tokens else { throw ValidationError("--tokens must be 1 to 1000000.") }
        if let cutEvery, cutEvery < 5 { throw ValidationError("--cut-every must be at least 5.") }
        guard 0...1e7 ~= timeout else { throw ValidationError("--timeout must be 0 to 10000000 seconds.") }
    }

    func run() async throws {
        let server = try Endpoint(to)
        guard let cutEvery else { return try await printStory(from: server) }
        try await withCuttingRelay(to: server, cuttingAfter: cutEvery, logger: silentLogger) { relay in
            try await printStory(from: relay)
        }
    }

    /// - Throws: `ExitCode` if not every token arrived once.
    private func printStory(from endpoint: Endpoint) async throws {
        var configuration = SessionClientConfiguration()
        // The connection is cut on purpose, so the client does not wait longer each time, or give up.
        configuration.client.backoff.initialDelay = .milliseconds(100)
        configuration.client.backoff.factor = 1
        configuration.client.backoff.maximumAttempts = nil
        try await withSessionClient(to: endpoint, configuration: configuration, logger: silentLogger) { session in
            let tally = try await printStory(over: session)
            if !quiet || !tally.isComplete {
                writeError("\(tally.summary(connectionCount: session.statistics.openingCount))\n")
            }
            if !tally.isComplete { throw ExitCode.failure }
        }
    }

    private func printStory(over session: SessionClient) async throws -> TokenTally {
        let storyteller = Example_Story_V1_StorytellerClient(session)
        let request = Example_Story_V1_TellRequest.with { ($0.seed, $0.tokenCount) = (seed, tokens) }
        var tally = TokenTally()
        // Also after an incomplete story.
        defer { if tally.receivedCount > 0 { try? printNow("\n") } }
        var connectionCount = 1
        for try await token in storyteller.tell(request, timeout: .seconds(timeout)) {
            tally.receive(number: Int(token.number))
            let openingCount = session.statistics.openingCount
            if openingCount > connectionCount {
                connectionCount = openingCount
                markConnection(connectionCount)
            }
            try printNow(token.text)
        }
        tally.finish(expectedCount: Int(tokens))
        return tally
    }

    /// Marks the beginning of a connection on a terminal.
    private func markConnection(_ number: Int) {
        guard !quiet, isatty(STDOUT_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return }
        writeError("\u{1b}[2m[\(number)]\u{1b}[0m")
    }
}

/// Standard output accepts nothing more.
private struct OutputFailure: Error, CustomStringConvertible {
    let description: String
}

/// Logs nothing, because cuts of the connection are expected here.
private let silentLogger = Logger(label: "TokenStreamClient") { _ in SwiftLogNoOpLogHandler() }

/// Prints a text without waiting for the end of its line.
private func printNow(_ text: String) throws {
    print(text, terminator: "")
    guard fflush(nil) == 0 else {
        throw OutputFailure(description: "Cannot write to standard output: \(String(cString: strerror(errno))).")
    }
}

private func writeError(_ text: String) {
    _ = write(STDERR_FILENO, text, text.utf8.count)
}
