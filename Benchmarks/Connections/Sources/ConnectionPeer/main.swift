internal import CEpollPeer
internal import Foundation
internal import NIOCore

// A server or a client of one of the contenders. `Benchmarks/run connection` starts both, and sends commands to the
// client.

let usage = """
    Usage: connection-peer server CONTENDER echo|sink
           connection-peer client CONTENDER

    A server prints `port PORT`. A client does what it reads from its standard input, a command a line (PeerCommand), and
    answers each with `done MESSAGES NANOSECONDS MEDIAN PERCENTILE-99`. Both end with their standard input.
    """

/// The server's reaction to messages.
enum ServerMode: String {
    /// Sends everything back.
    case echo
    /// Answers only empty messages, which tells a client that all earlier ones have arrived.
    case sink
}

/// Prints a line at once.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}

func run(_ arguments: [String]) async throws {
    _ = process_raise_descriptor_limit()
    // SwiftNIO counts the machine's processors, and not those that this process may run on.
    NIOSingletons.groupLoopCountSuggestion = Int(process_core_count())
    switch (arguments.first, arguments.dropFirst().first.flatMap(Contender.init)) {
    case ("server", let contender?) where arguments.count == 3:
        guard let mode = ServerMode(rawValue: arguments[2]) else { break }
        // The parent process is gone.
        Thread.detachNewThread {
            while readLine() != nil {}
            exit(0)
        }
        return try await contender.serve(mode)
    case ("client", let contender?) where arguments.count == 2:
        return try await obey(contender.makeClient())
    default: break
    }
    FileHandle.standardError.write(Data("\(usage)\n".utf8))
    exit(64)
}

func obey(_ client: any PeerClient) async throws {
    let (lines, continuation) = AsyncStream<String>.makeStream()
    // On a separate thread: with one core, Swift would lack the thread that this blocks.
    Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        exit(0)
    }
    for await line in lines {
        guard let command = PeerCommand(line) else { throw UnknownCommand(line: line) }
        let outcome = try await withTaskExecutorPreference(client.executor) { try await command.run(on: client) }
        say("done \(outcome.messages) \(outcome.nanoseconds) \(outcome.median) \(outcome.percentile99)")
    }
}

struct UnknownCommand: Error, CustomStringConvertible {
    let line: String
    var description: String { "There is no command \(line)." }
}

do {
    try await run(Array(CommandLine.arguments.dropFirst()))
} catch {
    FileHandle.standardError.write(Data("connection-peer \(CommandLine.arguments.dropFirst()): \(error)\n".utf8))
    exit(1)
}
