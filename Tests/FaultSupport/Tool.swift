internal import Dispatch
internal import Glibc
package import LifelineCore
internal import LifelineRuntime
internal import LifelineTransport

/// Runs the system's network tools: `ip`, `nft` and `ss`.
package enum Tool {
    /// A program's output, and the times of its run.
    package struct Run: Sendable {
        package let output: String
        package let moment: Moment
    }

    /// Runs a program to its end, and requires success.
    @discardableResult package static func run(
        _ name: String,
        _ arguments: [String],
        input: String = ""
    ) async throws -> Run {
        let path = try path(of: name)
        return try await onThread {
            let pipes = (input: try PipeEnds(), output: try PipeEnds())
            defer { close(pipes.output.reading) }
            let began = MonotonicTime.now()
            let process: ChildProcess
            do {
                // Only the program holds its ends of the pipes; otherwise the stream would not end.
                defer {
                    close(pipes.input.reading)
                    close(pipes.output.writing)
                }
                defer { close(pipes.input.writing) }
                process = try ChildProcess(
                    path,
                    arguments,
                    input: pipes.input.reading,
                    output: pipes.output.writing,
                    error: pipes.output.writing
                )
                // Far less than a pipe holds (64 KiB), so that this never blocks.
                _ = Array(input.utf8).withUnsafeBytes { write(pipes.input.writing, $0.baseAddress, $0.count) }
            }
            var bytes: [UInt8] = []
            while let chunk = readChunk(pipes.output.reading) { bytes += chunk }
            let status = process.wait()
            let moment = Moment(began: began, ended: .now())
            let output = String(decoding: bytes, as: UTF8.self)
            guard status == 0 else {
                let command = ([name] + arguments).joined(separator: " ")
                throw FaultFailure(
                    "\(command) ended with status \(status): \(output)\(input.isEmpty ? "" : "\n\(input)")"
                )
            }
            return Run(output: output, moment: moment)
        }
    }

    /// The path of a program. Only root's PATH certainly has the folders for administrators.
    package static func path(of name: String) throws -> String {
        let paths = ["/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"].map { $0 + name }
        guard let path = paths.first(where: { access($0, X_OK) == 0 }) else {
            throw FaultFailure("There is no \(name) here. Run scripts/install-dependencies test.")
        }
        return path
    }
}

/// The start and end of an action. Its effect began in between.
package struct Moment: Sendable, Hashable {
    package let began: MonotonicTime
    package let ended: MonotonicTime

    package init(began: MonotonicTime, ended: MonotonicTime) {
        self.began = began
        self.ended = ended
    }

    /// Runs `body`, and returns the times.
    package static func of(_ body: () throws -> Void) rethrows -> Moment {
        let began = MonotonicTime.now()
        try body()
        return Moment(began: began, ended: .now())
    }
}

/// Runs blocking work on a thread that no task uses.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Swift.Result { try body() }) }
    }
}
