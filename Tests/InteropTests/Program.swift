import Foundation
import Testing

/// Another process.
final class Program: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let executable: URL
    private let arguments: [String]

    init(_ executable: URL, _ arguments: [String]) {
        self.executable = executable
        self.arguments = arguments
    }

    /// Runs it to its end. Input and output go through files, so that neither side can wait for the other.
    func run(input: Data) async throws -> Data {
        let folder = FileManager.default.temporaryDirectory.appending(path: "interop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (inputFile, outputFile) = (folder.appending(path: "input"), folder.appending(path: "output"))
        try input.write(to: inputFile)
        try Data().write(to: outputFile)

        let process = try makeProcess()
        process.standardInput = try FileHandle(forReadingFrom: inputFile)
        process.standardOutput = try FileHandle(forWritingTo: outputFile)
        try await Self.runToEnd(process)
        try check(process)
        return try Data(contentsOf: outputFile)
    }

    /// Runs it with a pipe for its output; `body` gets the first line of it. Waits for its end after `body`.
    func run<Result>(_ body: (_ firstLine: String) async throws -> Result) async throws -> Result {
        let process = try makeProcess()
        let output = Pipe()
        process.standardOutput = output
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.run()
        do {
            let line = try await firstLine(of: output)
            let result = try await body(line)
            for await _ in ended.stream {}
            try check(process)
            return result
        } catch {
            process.terminate()
            throw error
        }
    }

    /// Waits on a thread that may block.
    private func firstLine(of pipe: Pipe) async throws -> String {
        let file = pipe.fileHandleForReading
        let line: String? = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                var bytes = Data()
                while let byte = try? file.read(upToCount: 1), byte != Data("\n".utf8) { bytes += byte }
                continuation.resume(returning: bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self))
            }
        }
        guard let line else { throw Failure(description: "\(executable.path) said nothing") }
        return line
    }

    private func makeProcess() throws -> Process {
        guard FileManager.default.isExecutableFile(atPath: executable.path) else {
            throw Failure(
                description: "\(executable.path) is missing. Run scripts/install-dependencies test and "
                    + "Tests/InteropTests/Peers/build first."
            )
        }
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        return process
    }

    private static func runToEnd(_ process: Process) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    private func check(_ process: Process) throws {
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            let command = ([executable.lastPathComponent] + arguments).joined(separator: " ")
            throw Failure(description: "\(command) ended with status \(process.terminationStatus); it says why above")
        }
    }
}
