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

    /// Goes on behind what the file holds. Takes no symbolic link, which somebody else may have made to lead to a file
    /// of this user's.
    init(path: String) throws(CommandFailure) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else {
            // With O_NOFOLLOW that is what open(2) says of a link in the path's last component.
            let reason =
                errno == ELOOP
                ? "it is a symbolic link, which may lead anywhere. Name the file that it leads to, or another one"
                : lastErrorText()
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(reason).")
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
