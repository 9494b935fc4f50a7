internal import Glibc
internal import Synchronization

/// A file with a line for each echo that was handled: the session's id and the number.
///
/// A line is one `write`, which the system has done when it returns, whatever becomes of this process then.
final class EchoRecord: Sendable {
    private let path: String
    private let descriptor: Int32
    /// One line at a time, so that what is cut off again is of the line that had no room.
    private let writing = Mutex(())

    /// Goes on behind what the file holds.
    init(path: String) throws(CommandFailure) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(lastErrorText()).")
        }
    }

    deinit { close(descriptor) }

    func append(session: String, number: UInt64) throws(CommandFailure) {
        let line = Array("\(session) \(number)\n".utf8)
        let count = writing.withLock { _ in
            let count = retryingOnInterrupt { write(descriptor, line, line.count) }
            // The half of a number would count as another one.
            if 0 < count, count < line.count { ftruncate(descriptor, lseek(descriptor, 0, SEEK_END) - count) }
            return count
        }
        guard count != line.count else { return }
        let reason = count < 0 ? lastErrorText() : "no room for a line"
        throw CommandFailure(status: .inputOutput, message: "Cannot write to \(path): \(reason).")
    }
}
