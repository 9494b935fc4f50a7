#if Store
internal import Glibc
internal import Lifeline
internal import Synchronization

/// Makes sure that only one process uses a file at a time: locks a second file next to it, which remains.
final class FileLock: Sendable {
    /// The descriptor of the lock file; -1 when it is unlocked.
    private let file: Mutex<Int32>

    /// - Throws: `inUse`, `failed`.
    init(besides path: String) throws(StoreError) {
        let name = path + ".lock"
        let file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw StoreError(opening: name, errno) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(file)
            if code != EWOULDBLOCK { throw StoreError(opening: name, code) }
            throw StoreError(
                code: .inUse,
                message: "\(path) is in use. Stop the process that uses it, or name another file."
            )
        }
        self.file = Mutex(file)
    }

    deinit { unlock() }

    func unlock() {
        file.withLock { file in
            guard file >= 0 else { return }
            // Closing alone is not enough: a process that another thread starts has a copy until it runs its program.
            flock(file, LOCK_UN)
            close(file)
            file = -1
        }
    }
}
#endif
