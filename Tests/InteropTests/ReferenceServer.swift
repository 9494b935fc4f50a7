import Dispatch
import Foundation
import Lifeline

/// A server of an older framing, in Python, written from the framing's description: Peers/older_framings.
enum ReferenceServer: String, Sendable {
    case fixedHeader = "fixed_header_server"
    case headLine = "head_line_server"

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs the server while `body` runs.
    func run(_ arguments: [String] = [], _ body: (Endpoint) async throws -> Void) async throws {
        let script = Checkout.folder.appending(path: "Tests/InteropTests/Peers/older_framings/\(rawValue).py")
        let process = Process()
        let (life, output) = (Pipe(), Pipe())
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", ReferenceServer.watchdog, "/usr/bin/python3", "-B", script.path] + arguments
        process.standardInput = life
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.run()
        let result: Result<Void, any Error>
        do {
            guard let port = UInt16(await firstLine(of: output)) else {
                throw Failure(description: "\(script.path) did not print its port.")
            }
            result = .success(try await body(.tcp(host: "127.0.0.1", port: port)))
        } catch {
            result = .failure(error)
        }
        try life.fileHandleForWriting.close()
        for await _ in ended.stream {}
        try result.get()
    }

    /// Ends the program when its standard input ends: by this process, or with it. Signals are blocked on dispatch's
    /// threads, and children inherit that.
    private static let watchdog = """
        import os, signal, subprocess, sys, threading
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
        threading.Thread(target=lambda: (os.read(0, 1), program.kill()), daemon=True).start()
        program.wait()
        """

    /// Waits on a thread that may block.
    private func firstLine(of pipe: Pipe) async -> String {
        let file = pipe.fileHandleForReading
        return await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var bytes = Data()
                while let byte = try? file.read(upToCount: 1), !byte.isEmpty, byte != Data("\n".utf8) { bytes += byte }
                continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
            }
        }
    }
}
