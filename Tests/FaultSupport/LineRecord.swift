internal import Glibc
internal import Synchronization

/// A file of lines that survives its process, even if that is killed.
package final class LineRecord: Sendable {
    private let file: Int32
    private let lineCount: Mutex<Int>

    /// The number of lines in the file.
    package var count: Int { lineCount.withLock { $0 } }

    /// Continues a file, or begins a new one.
    package init(at path: String) throws {
        file = open(path, O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FaultFailure("\(path) cannot be opened.") }
        var count = 0
        while let chunk = readChunk(file) { count += chunk.count { $0 == UInt8(ascii: "\n") } }
        lineCount = Mutex(count)
    }

    deinit { close(file) }

    /// Writes a line. The line is in the file when this returns.
    package func add(_ line: String) throws {
        // A single write for each line, so that the kernel has the whole line if the process is killed.
        let written = Array((line + "\n").utf8).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        guard written == line.utf8.count + 1 else { throw FaultFailure("The record cannot be written.") }
        lineCount.withLock { $0 += 1 }
    }
}
