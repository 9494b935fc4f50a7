internal import Dispatch
internal import Glibc

/// Whether to show progress, because standard error is a terminal.
let isInteractive = isatty(STDERR_FILENO) == 1

/// Writes to standard error, without waiting: see `ErrorOutput`.
func writeError(_ text: String) { ErrorOutput.standard.write(text) }

/// Writes a line to standard error. It replaces the line of `Progress`, if there is one.
func writeErrorLine(_ line: String) {
    writeError(isInteractive ? "\r\u{1b}[K\(line)\n" : "\(line)\n")
}

/// The error of a system call.
struct SystemError: Error {
    let number: Int32
}

/// Writes all of `bytes`, and blocks until they are taken.
func writeBlocking(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { buffer in
            retryingOnInterrupt { write(descriptor, buffer.baseAddress, buffer.count) }
        }
        if count >= 0 {
            rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
            waitUntilReady(descriptor, to: POLLOUT)
        } else {
            throw SystemError(number: errno)
        }
    }
}

/// Waits for a non-blocking descriptor. Another process with the same pipe or terminal may have made it non-blocking.
private func waitUntilReady(_ descriptor: Int32, to event: Int32) {
    var awaited = pollfd(fd: descriptor, events: Int16(event), revents: 0)
    _ = retryingOnInterrupt { Int(poll(&awaited, 1, -1)) }
}

/// Runs work that may block on a dispatch queue's thread, and not on the threads for tasks. A cancelled task does not
/// wait for its end.
///
/// - Throws: what `work` throws; `CancellationError` when the task is cancelled first.
nonisolated(nonsending) func blocking<Value: Sendable>(
    on queue: DispatchQueue,
    _ work: @escaping @Sendable () throws -> Value
) async throws -> Value {
    let (results, continuation) = AsyncThrowingStream.makeStream(of: Value.self)
    queue.async { continuation.yield(with: Result { try work() }) }
    for try await result in results { return result }
    throw CancellationError()
}

/// Reads from a file descriptor.
struct InputFile: ~Copyable {
    private let descriptor: Int32
    /// The name of the file for the user.
    let name: String
    private let isOwned: Bool

    static func standardInput() -> InputFile {
        InputFile(descriptor: STDIN_FILENO, name: "standard input")
    }

    init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(lastErrorText()).")
        }
        self.init(descriptor: descriptor, name: path, isOwned: true)
    }

    /// Makes a file from a descriptor that the caller closes.
    init(descriptor: Int32, name: String) {
        self.init(descriptor: descriptor, name: name, isOwned: false)
    }

    private init(descriptor: Int32, name: String, isOwned: Bool) {
        self.descriptor = descriptor
        self.name = name
        self.isOwned = isOwned
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// Waits for the next bytes, at most 64 KiB; returns none at the end. Bytes that a cancelled task has requested are
    /// lost.
    func readChunk() async throws -> [UInt8] {
        let (descriptor, name) = (descriptor, name)
        return try await blocking(on: .global()) {
            try InputFile(descriptor: descriptor, name: name).read(atMost: 64 << 10)
        }
    }

    /// Blocks until there are bytes; returns none at the end.
    func read(atMost length: Int) throws(CommandFailure) -> [UInt8] {
        var isRead = false
        let chunk = [UInt8](unsafeUninitializedCapacity: length) { memory, count in
            var result = retryingOnInterrupt { Glibc.read(descriptor, memory.baseAddress, length) }
            while result < 0, errno == EAGAIN {
                waitUntilReady(descriptor, to: POLLIN)
                result = retryingOnInterrupt { Glibc.read(descriptor, memory.baseAddress, length) }
            }
            (isRead, count) = (result >= 0, max(result, 0))
        }
        if isRead { return chunk }
        throw CommandFailure(status: .inputOutput, message: "Cannot read \(name): \(lastErrorText()).")
    }

    /// Blocks until the end, and returns everything.
    ///
    /// - Parameter limit: the most bytes that the file may have.
    func readToEnd(limit: Int) throws(CommandFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try read(atMost: 1 << 20)
            if chunk.isEmpty { return bytes }
            bytes += chunk
            if bytes.count > limit {
                throw CommandFailure(status: .badData, message: "\(name) is longer than \(limit) bytes.")
            }
        }
    }
}

/// Repeats a system call until no signal interrupts it.
func retryingOnInterrupt(_ call: () -> Int) -> Int {
    while true {
        let count = call()
        if count >= 0 || errno != EINTR { return count }
    }
}

/// Returns the error text of the last system call.
func lastErrorText() -> String { String(cString: strerror(errno)) }
