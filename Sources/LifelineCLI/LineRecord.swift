internal import FoundationEssentials
internal import Glibc
internal import LifelineCore
internal import Synchronization

/// A file of this user to which one process at a time appends lines.
///
/// Added lines survive the end of this process: the system has them when `append` returns.
final class LineRecord: Sendable {
    private let path: String
    private let descriptor: Int32
    /// One call at a time, so that after a failure only the failed lines are cut off again.
    private let writing = Mutex(())

    /// Opens a file, or makes it. Refuses a symbolic link, which somebody else may have made to a file of this user,
    /// and a file that others can read, because it may have passwords and tokens.
    ///
    /// - Throws: `CommandFailure`.
    init(path: String) throws(CommandFailure) {
        self.path = path
        // O_NONBLOCK: opening a FIFO would wait.
        let flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else {
            // With O_NOFOLLOW, open(2) fails with this error for a link in the path's last component.
            let reason =
                errno == ELOOP
                ? "it is a symbolic link, which may lead anywhere. Name the file that it leads to, or another one"
                : lastErrorText()
            throw CommandFailure(status: .inputOutput, message: "Cannot open \(path): \(reason).")
        }
        guard let objection = objection else { return }
        throw CommandFailure(status: .inputOutput, message: "Cannot record in \(path): \(objection).")
    }

    // Also runs when the initializer throws.
    deinit {
        guard descriptor >= 0 else { return }
        // Closing alone is not enough: a process that another thread starts has a copy until it runs its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// The reason why the file cannot be used; nil if it can. Locks the file.
    private var objection: String? {
        // By the path, because the members of fstat's structure cannot be used together with FoundationEssentials.
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            let owner = attributes[.ownerAccountID] as? UInt, let permissions = attributes[.posixPermissions] as? UInt
        else { return "its attributes cannot be read" }
        if attributes[.type] as? FileAttributeType != .typeRegular { return "it is no regular file" }
        if owner != geteuid() { return "it belongs to another user" }
        if permissions & 0o077 != 0 {
            return "other users may open it. Take that from them with chmod 600, or name another file"
        }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            return errno == EWOULDBLOCK ? "another lifeline records in it. Name another file" : lastErrorText()
        }
        return nil
    }

    /// The content of the file, to be read once, before anything is added.
    var content: InputFile { InputFile(descriptor: descriptor, name: path) }

    /// Adds whole lines, all or none of them.
    func append(_ lines: [UInt8]) throws(CommandFailure) {
        let error: SystemError? = writing.withLock { _ in
            let length = lseek(descriptor, 0, SEEK_END)
            do throws(SystemError) {
                try writeBlocking(lines, to: descriptor)
                return nil
            } catch {
                // A part of a line would count as a line.
                ftruncate(descriptor, length)
                return error
            }
        }
        guard let error else { return }
        let reason = String(cString: strerror(error.number))
        throw CommandFailure(status: .inputOutput, message: "Cannot write to \(path): \(reason).")
    }
}
