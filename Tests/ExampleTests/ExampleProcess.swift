import Foundation
import LifelineClientTestSupport
import LifelineTestSupport
import Testing

/// A running program of an example, whose output goes to files.
final class ExampleProcess: Sendable {
    private let process: Process
    private let ended: AsyncStream<Never>
    private let outputPath: String
    private let errorPath: String

    /// Starts a program of this package. Its output is appended to files whose names begin with `path`.
    init(_ name: String, _ arguments: [String], output path: String) throws {
        let (ended, continuation) = AsyncStream.makeStream(of: Never.self)
        (process, self.ended) = (Process(), ended)
        (outputPath, errorPath) = (path + ".out", path + ".err")
        process.executableURL = URL(filePath: try Program.product(name, []).path)
        process.arguments = arguments
        let files = try [outputPath, errorPath].map { path in
            let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            try #require(descriptor >= 0, "\(path): \(String(cString: strerror(errno)))")
            return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }
        process.standardInput = FileHandle.nullDevice
        (process.standardOutput, process.standardError) = (files[0], files[1])
        process.terminationHandler = { _ in continuation.finish() }
        try process.start()
    }

    /// A test that fails leaves no process behind.
    deinit { signal(SIGKILL) }

    /// The output of this process, and of earlier ones with the same files.
    var output: String { (try? String(contentsOfFile: outputPath, encoding: .utf8)) ?? "" }
    var errorText: String { (try? String(contentsOfFile: errorPath, encoding: .utf8)) ?? "" }

    func signal(_ number: Int32) {
        // The system may give the number of an ended process to another one.
        if process.isRunning { Foundation.kill(process.processIdentifier, number) }
    }

    /// Waits until it has ended; its exit status, negative for a signal.
    @discardableResult func end() async -> Int32 {
        for await _ in ended {}
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// Ends it as a loss of power does.
    func kill() async {
        signal(SIGKILL)
        await end()
    }
}
