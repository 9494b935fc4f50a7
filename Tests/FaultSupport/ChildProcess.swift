internal import Foundation
internal import Glibc
internal import Synchronization

/// A requirement of the tests is missing or has failed.
package struct FaultFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// A running process. It can be signalled at any time, because a number that the system has reused is never signalled.
final class ChildProcess: Sendable {
    let id: pid_t
    private let status = Mutex<Int32?>(nil)

    /// Starts a program with these descriptors as its standard streams. Nothing else of this process is passed on.
    init(_ path: String, _ arguments: [String], input: Int32, output: Int32, error: Int32) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (target, descriptor) in [input, output, error].enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(target))
        }
        // Not all descriptors are marked to be closed: Foundation's pipes are not, and a pipe that a child also holds
        // does not end.
        for descriptor in 3...(try ChildProcess.highestDescriptor() + 1024) {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        // The other attributes are inherited by default. Children must not ignore or block the signals that this
        // process ignores or blocks.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var id = pid_t()
        let code = PipeEnds.lock.withLock { _ in posix_spawn(&id, path, &actions, &attributes, &words, environ) }
        guard code == 0 else { throw FaultFailure("\(path) cannot be run: \(String(cString: strerror(code)))") }
        self.id = id
    }

    /// The highest descriptor of this process. Other threads may open more meanwhile, but not a thousand.
    private static func highestDescriptor() throws -> Int32 {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }.max() ?? 2
    }

    /// Sends a signal. Returns false if the process has ended.
    @discardableResult func signal(_ number: Int32) -> Bool {
        status.withLock { $0 == nil && kill(id, number) == 0 }
    }

    /// Stops the process, and blocks until it has stopped. Returns false if it has ended.
    ///
    /// One thread handles the signal when the system schedules it. Until then, the other threads run.
    func stop() -> Bool {
        guard signal(SIGSTOP) else { return false }
        var information = siginfo_t()
        repeat {
            // A process that has ended is not reaped here.
            guard waitid(P_PID, id_t(id), &information, WSTOPPED | WEXITED | WNOWAIT) == 0 || errno == EINTR else {
                return false
            }
        } while information.si_signo == 0
        return information.si_code == CInt(CLD_STOPPED)
    }

    /// Blocks until the process has ended. Returns its exit status, or the negated number of the signal that ended it.
    func wait() -> Int32 {
        var information = siginfo_t()
        // The process is not reaped, so that its number stays in use until `status` says that it has ended.
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        return status.withLock { status in
            if let status { return status }
            var raw: Int32 = 0
            while waitpid(id, &raw, 0) < 0, errno == EINTR {}
            let result = raw & 0x7F == 0 ? (raw >> 8) & 0xFF : -(raw & 0x7F)
            status = result
            return result
        }
    }
}

/// A pipe whose ends no child inherits: a child that held another's pipe would keep the stream from ending.
struct PipeEnds {
    let reading: Int32
    let writing: Int32

    /// No child is started while an end is not marked yet. (Glibc's module lacks pipe2, which does both at once.)
    fileprivate static let lock = Mutex(())

    init() throws {
        var ends: [Int32] = [-1, -1]
        let result = PipeEnds.lock.withLock { _ in
            guard pipe(&ends) == 0 else { return false }
            return ends.allSatisfy { fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }
        }
        guard result else { throw FaultFailure("No pipe: \(String(cString: strerror(errno)))") }
        (reading, writing) = (ends[0], ends[1])
    }
}

/// Reads the available bytes, or waits for some; nil at the end.
func readChunk(_ descriptor: Int32) -> [UInt8]? {
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = read(descriptor, &chunk, chunk.count)
        if count > 0 { return Array(chunk[..<count]) }
        if count == 0 || errno != EINTR { return nil }
    }
}
