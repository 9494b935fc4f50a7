internal import Dispatch
internal import Glibc
internal import Synchronization

/// The output of a command: a file, or standard output.
final class OutputFile: Sendable {
    static let standardOutput = OutputFile(descriptor: STDOUT_FILENO, name: "standard output", isOld: false)

    private let descriptor: Int32
    private let name: String
    private let queue = DispatchQueue(label: "lifeline.output")
    /// Whether the file still has its old content. A command that fails before it has a result does not touch it.
    private let isOld: Mutex<Bool>

    private init(descriptor: Int32, name: String, isOld: Bool) {
        (self.descriptor, self.name) = (descriptor, name)
        self.isOld = Mutex(isOld)
    }

    /// Opens a file, or makes it.
    ///
    /// - Throws: `CommandFailure` when it cannot be opened.
    convenience init(path: String) throws(CommandFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(lastErrorText()).")
        }
        self.init(descriptor: descriptor, name: path, isOld: true)
    }

    deinit { if descriptor != STDOUT_FILENO { close(descriptor) } }

    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Empties the file, if nothing was written to it yet.
    func begin() {
        let begins = isOld.withLock { isOld in
            defer { isOld = false }
            return isOld
        }
        // A pipe or a device cannot be emptied, and fails.
        if begins { ftruncate(descriptor, 0) }
    }

    /// Writes all of `bytes`, and waits until they are taken. The writes of several tasks keep the order of the calls.
    ///
    /// - Throws: `CommandFailure`; `CancellationError` when the task is cancelled first.
    nonisolated(nonsending) func write(_ bytes: [UInt8]) async throws {
        try await blocking(on: queue) { try self.writeBlocking(bytes) }
    }

    /// Writes all of `bytes`, and blocks until they are taken.
    func writeBlocking(_ bytes: [UInt8]) throws(CommandFailure) {
        begin()
        do throws(SystemError) {
            try LifelineCLI.writeBlocking(bytes, to: descriptor)
        } catch {
            let reason = String(cString: strerror(error.number))
            throw CommandFailure(status: .inputOutput, message: "Cannot write to \(name): \(reason).")
        }
    }
}
