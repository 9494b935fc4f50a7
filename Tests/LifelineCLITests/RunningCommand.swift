import Foundation
import LifelineTestSupport

/// A `lifeline` command that runs during a test. It is killed when this object is released.
final class RunningCommand: Sendable {
    /// The command or its stream ended too early.
    struct Ended: Error {
        let errorText: String
    }

    private let process = Process()
    private let input = Pipe.make()
    private let folder: URL
    private let end = AsyncStream.makeStream(of: Void.self)
    private let watch: FileWatch

    /// - Parameters:
    ///   - preparation: what a shell does first, in the same process.
    ///   - file: an existing file. `wait(until:)` also waits for its content, besides the output of the command.
    init(_ arguments: [String], after preparation: String? = nil, watching file: String? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "command-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for name in ["output", "errors"] { try Data().write(to: folder.appending(path: name)) }
        let said = ["output", "errors"].map { [folder] in folder.appending(path: $0).path }
        watch = try FileWatch(said + (file.map { [$0] } ?? []))
        let program = try Program.product("lifeline", []).path
        process.executableURL = URL(filePath: preparation == nil ? program : "/bin/sh")
        process.arguments = preparation.map { ["-c", "\($0); exec \"$0\" \"$@\"", program] + arguments } ?? arguments
        process.environment = Program.environment(from: ProcessInfo.processInfo.environment)
        process.standardInput = input
        process.standardOutput = try FileHandle(forWritingTo: folder.appending(path: "output"))
        process.standardError = try FileHandle(forWritingTo: folder.appending(path: "errors"))
        // A process may run for ever, but the object that watches it must not.
        process.terminationHandler = { [end, weak watch] _ in
            end.continuation.finish()
            watch?.lookAgain()
        }
        try process.start()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: folder)
    }

    /// `lifeline serve`, which listens already.
    static func serve(
        on endpoint: String = "tcp://127.0.0.1:0",
        _ options: String...,
        after preparation: String? = nil
    ) async throws -> (server: RunningCommand, endpoint: String) {
        let arguments = ["serve", "--on", endpoint, "--spread", "0"] + options
        let server = try RunningCommand(arguments, after: preparation)
        try await server.wait { $0.errorText.contains("listening on ") && $0.errorText.contains("\n") }
        let line = server.errorText.split(separator: "\n").first { $0.hasPrefix("listening on ") } ?? ""
        return (server, String(line.dropFirst("listening on ".count)))
    }

    var processIdentifier: Int32 { process.processIdentifier }
    var output: String { text(of: "output") }
    var errorText: String { text(of: "errors") }
    var lines: [String] { output.split(separator: "\n").map(String.init) }

    private func text(of name: String) -> String {
        (try? String(contentsOf: folder.appending(path: name), encoding: .utf8)) ?? ""
    }

    /// Types a line.
    func type(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8)) }

    func endInput() throws { try input.fileHandleForWriting.close() }

    /// Waits until `condition` is met. An action of the command has to cause it.
    func wait(until condition: (RunningCommand) throws -> Bool) async throws {
        try await watch.wait {
            // Checked first, so that the last output is seen.
            let isRunning = process.isRunning
            if try condition(self) { return () }
            guard isRunning else { throw Ended(errorText: errorText) }
            return nil
        }
    }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// Kills it, and waits until it is gone.
    func killAndWait() async {
        send(SIGKILL)
        _ = await finish()
    }

    /// Waits for its end; its exit code, or the signal that ended it, below 0.
    func finish() async -> Int32 {
        for await _ in end.stream {}
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }
}

/// Runs `lifeline call` to its end.
///
/// - Parameter method: of the room.
func call(
    _ endpoint: String,
    _ method: String,
    _ options: String...,
    input: String = ""
) async throws -> Program.Outcome {
    try await Program.product("lifeline", ["call", endpoint, "Room/\(method)"] + options)
        .outcome(input: Data(input.utf8))
}
