package import Foundation

/// Another process.
package struct Program: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// How a process ended.
    package struct Outcome: Sendable {
        package let status: Int32
        package let output: Data
        package let errorText: String
    }

    private let executable: URL
    private let arguments: [String]

    package init(_ executable: URL, _ arguments: [String]) {
        self.executable = executable
        self.arguments = arguments
    }

    package var path: String { executable.path }

    /// A product of this package, next to the test's executable.
    package static func product(_ name: String, _ arguments: [String]) throws -> Program {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return Program(URL(filePath: tests).deletingLastPathComponent().appending(path: name), arguments)
    }

    /// Runs it to its end. Its streams are files, so that neither side waits for the other.
    package func outcome(input: Data = Data()) async throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory.appending(path: "program-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = ["input", "output", "error"].map { folder.appending(path: $0) }
        try input.write(to: files[0])
        for file in files[1...] { try Data().write(to: file) }

        let streams = try [FileHandle(forReadingFrom: files[0])] + files[1...].map { try FileHandle(forWritingTo: $0) }
        // Foundation never releases a process, or the objects that it was given.
        defer { for stream in streams { try? stream.close() } }
        let process = try makeProcess()
        process.standardInput = streams[0]
        process.standardOutput = streams[1]
        process.standardError = streams[2]
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            process.terminationHandler = { _ in continuation.resume() }
            do { try process.start() } catch { continuation.resume(throwing: error) }
        }
        return Outcome(
            status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
            output: try Data(contentsOf: files[1]),
            errorText: String(decoding: try Data(contentsOf: files[2]), as: UTF8.self)
        )
    }

    /// Runs it to its end, requires success, and returns its output.
    package func run(input: Data = Data()) async throws -> Data {
        let outcome = try await outcome(input: input)
        guard outcome.status == 0 else { throw failure(status: outcome.status, complaint: outcome.errorText) }
        return outcome.output
    }

    /// Runs `body` with the first line of the output while the process runs, and then waits for its success.
    package func run<Result>(_ body: (_ firstLine: String) async throws -> Result) async throws -> Result {
        let process = try makeProcess()
        let output = Pipe.make()
        process.standardOutput = output
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.start()
        do {
            let result = try await body(firstLine(of: output))
            for await _ in ended.stream {}
            guard process.terminationReason == .exit, process.terminationStatus == 0 else {
                throw failure(status: process.terminationStatus, complaint: "it says why above")
            }
            return result
        } catch {
            // The output of a process that has ended explains the failure.
            let hasEnded = !process.isRunning
            if !hasEnded { process.terminate() }
            for await _ in ended.stream {}
            guard hasEnded else { throw error }
            throw failure(status: process.terminationStatus, complaint: "it was gone when this failed: \(error)")
        }
    }

    /// Waits on a thread that may block.
    private func firstLine(of pipe: Pipe) async throws -> String {
        let file = pipe.fileHandleForReading
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try line(from: file) })
                // The rest is read, too. Otherwise the process would wait for room in the pipe.
                _ = try? file.readToEnd()
            }
        }
    }

    private func line(from file: FileHandle) throws -> String {
        var bytes = Data()
        while let byte = try file.read(upToCount: 1), !byte.isEmpty {
            if byte == Data("\n".utf8) { return String(decoding: bytes, as: UTF8.self) }
            bytes += byte
        }
        throw Failure(description: "\(executable.path) ended after \(bytes.count) bytes of its first line")
    }

    private func makeProcess() throws -> Process {
        guard FileManager.default.isExecutableFile(atPath: executable.path) else {
            throw Failure(
                description:
                    "\(executable.path) is missing. Build the package, and run scripts/install-dependencies test "
                    + "and Tests/InteropTests/Peers/build."
            )
        }
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = Program.environment(from: ProcessInfo.processInfo.environment)
        return process
    }

    /// Without variables of a developer's machine that set a proxy or trusted roots.
    package static func environment(from own: [String: String]) -> [String: String] {
        own.filter { name, _ in !name.lowercased().hasSuffix("_proxy") && name != "SSL_CERT_FILE" }
    }

    private func failure(status: Int32, complaint: String) -> Failure {
        let command = ([executable.lastPathComponent] + arguments).joined(separator: " ")
        return Failure(description: "\(command) ended with status \(status): \(complaint)")
    }
}

/// The options of the `lifeline` command for the sample's `ChatMessage`.
package let chatSchema: [String] = {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized.path
    return ["--proto", "\(root)/Protos/sample/chat/v1/chat.proto", "-I", "\(root)/Protos", "--type", "ChatMessage"]
}()

/// The options of `lifeline send` for a `ChatMessage` with this text, which is inserted into JSON unchanged.
package func chatMessage(_ text: String) -> [String] { chatSchema + ["--data", #"{"text": "\#(text)"}"#] }

/// Runs `lifeline receive` until it has received `count` messages, and `body` with its endpoint meanwhile. Returns its
/// standard output.
package func receive(
    on endpoint: String = "tcp://127.0.0.1:0",
    options: [String] = [],
    count: Int,
    format: String,
    _ body: (_ endpoint: String) async throws -> Void
) async throws -> Data {
    let folder = FileManager.default.temporaryDirectory.appending(path: "receive-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let output = folder.appending(path: "output")
    // Its announcement on standard error becomes the shell's output, and its messages go into a file.
    let command = """
        exec 3>&1; exec "$0" receive --on "$1" --count "$2" --format "$3" "${@:5}" 2>&3 3>&- >"$4"
        """
    let lifeline = try Program.product("lifeline", []).path
    let arguments = ["-c", command, lifeline, endpoint, "\(count)", format, output.path] + options
    try await Program(URL(filePath: "/bin/bash"), arguments).run { line in
        try await body(String(line.split(separator: " ").last ?? ""))
    }
    return try Data(contentsOf: output)
}
