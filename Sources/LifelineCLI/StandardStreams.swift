internal import Dispatch
internal import Glibc

/// Whether progress is welcome: standard error is a terminal.
let isInteractive = isatty(STDERR_FILENO) == 1

/// Writes to standard error. When that fails there is nowhere left to say so.
func writeError(_ text: String) {
    _ = Array(text.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Writes a line to standard error, in place of the line of `Progress` where that stands.
func writeErrorLine(_ line: String) {
    writeError(isInteractive ? "\r\u{1b}[K\(line)\n" : "\(line)\n")
}

/// Writes all of `bytes` to standard output, and waits until it takes them.
func writeToStandardOutput(_ bytes: [UInt8]) throws(CommandFailure) {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { buffer in
            retryingOnInterrupt { write(STDOUT_FILENO, buffer.baseAddress, buffer.count) }
        }
        guard count >= 0 else {
            throw CommandFailure(status: .inputOutput, message: "Cannot write to standard output: \(lastErrorText()).")
        }
        rest = rest.dropFirst(count)
    }
}

/// Reads from a file descriptor on a thread that may block, and not on those that tasks run on.
struct InputFile: ~Copyable {
    private let descriptor: Int32
    private let name: String
    private let isOwned: Bool

    static func standardInput() -> InputFile {
        InputFile(descriptor: STDIN_FILENO, name: "standard input", isOwned: false)
    }

    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(lastErrorText()).")
        }
        self.init(descriptor: descriptor, name: path, isOwned: true)
    }

    private init(descriptor: Int32, name: String, isOwned: Bool) {
        self.descriptor = descriptor
        self.name = name
        self.isOwned = isOwned
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// The next bytes, at most 64 KiB; empty at the end.
    func readChunk() async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            startReading { continuation.resume(with: $0) }
        }
    }

    /// Calls `completion` with the next bytes, at most 64 KiB; with none at the end.
    func startReading(_ completion: @escaping @Sendable (Result<[UInt8], any Error>) -> Void) {
        let (descriptor, name) = (descriptor, name)
        DispatchQueue.global().async {
            var chunk = [UInt8](repeating: 0, count: 64 << 10)
            let count = retryingOnInterrupt { read(descriptor, &chunk, chunk.count) }
            if count >= 0 {
                completion(.success(Array(chunk[..<count])))
            } else {
                let message = "Cannot read \(name): \(lastErrorText())."
                completion(.failure(CommandFailure(status: .inputOutput, message: message)))
            }
        }
    }
}

/// Makes a call to the system until no signal interrupts it.
func retryingOnInterrupt(_ call: () -> Int) -> Int {
    while true {
        let count = call()
        if count >= 0 || errno != EINTR { return count }
    }
}

/// What the last call to the system failed with.
func lastErrorText() -> String { String(cString: strerror(errno)) }
