internal import Glibc
internal import Synchronization

/// A file of lines that survives the process which writes them, also when that is killed.
package final class LineRecord: Sendable {
    private let file: Int32
    private let lineCount: Mutex<Int>

    /// How many lines the file has.
    package var count: Int { lineCount.withLock { $0 } }

    /// Goes on with a file, or begins it.
    package init(at path: String) throws {
        file = open(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FaultFailure("\(path) cannot be opened.") }
        var count = 0
        while let chunk = readChunk(file) { count += chunk.count { $0 == UInt8(ascii: "\n") } }
        lineCount = Mutex(count)
    }

    deinit { close(file) }

    /// Has the line in the file when it returns.
    package func add(_ line: String) throws {
        // One write each, which the kernel has as a whole when the process is killed.
        let written = Array((line + "\n").utf8).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        guard written == line.utf8.count + 1 else { throw FaultFailure("The record cannot be written.") }
        lineCount.withLock { $0 += 1 }
    }
}
