import Dispatch
import Foundation
import LifelineTestSupport

/// A program that runs as long as it is needed, and then gets a SIGTERM.
struct BackgroundProgram: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Its name, which is searched for, or its path, and its arguments.
    let command: [String]
    /// Whether the first line may also be on standard error, which is then not passed on.
    var readsStandardError = false

    /// Runs `body` while the program runs, with the rest of the first line that begins with `prefix`.
    func run<Result>(announcing prefix: String = "", _ body: (String) async throws -> Result) async throws -> Result {
        try await run(upTo: prefix) { lines in try await body(String(lines[lines.count - 1].dropFirst(prefix.count))) }
    }

    /// Runs `body` while the program runs, with its lines up to the first one that begins with `prefix`.
    func run<Result>(upTo prefix: String, _ body: ([String]) async throws -> Result) async throws -> Result {
        let process = Process()
        let (life, output) = (Pipe.make(), Pipe.make())
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", BackgroundProgram.watchdog] + command
        process.standardInput = life
        process.standardOutput = output
        if readsStandardError { process.standardError = output }
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.start()
        let result: Swift.Result<Result, any Error>
        do {
            guard let announcement = await lines(of: output, upTo: prefix) else {
                throw Failure(
                    description: "\(command[0]) ended without saying \(prefix)… Run scripts/install-dependencies test."
                )
            }
            result = .success(try await body(announcement))
        } catch {
            result = .failure(error)
        }
        try life.fileHandleForWriting.close()
        for await _ in ended.stream {}
        return try result.get()
    }

    /// Ends the program when its standard input ends: by this process, or with it. Signals are blocked on dispatch's
    /// threads, and children inherit that. If PID_FILE names a file, the program's number is written to it atomically.
    static let watchdog = """
        import os, signal, subprocess, sys, threading
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
        pid_file = os.environ.get("PID_FILE")
        if pid_file:
            with open(pid_file + "~", "w") as file: file.write(str(program.pid))
            os.rename(pid_file + "~", pid_file)
        def end():
            os.read(0, 1)
            program.terminate()
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()
        threading.Thread(target=end, daemon=True).start()
        program.wait()
        """

    /// Waits on a thread that may block. The rest is read, too. Otherwise the program would wait for room in the pipe.
    private func lines(of pipe: Pipe, upTo prefix: String) async -> [String]? {
        let lines = AsyncStream.makeStream(of: String.self)
        let file = pipe.fileHandleForReading
        DispatchQueue.global().async {
            var rest = Data()
            // Empty at the end only.
            while case let chunk = file.availableData, !chunk.isEmpty {
                rest += chunk
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    lines.continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            lines.continuation.finish()
        }
        var found: [String] = []
        for await line in lines.stream {
            found.append(line)
            if line.hasPrefix(prefix) { return found }
        }
        return nil
    }
}
