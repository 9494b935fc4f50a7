import Foundation

/// The commands for a program under test: lines of its standard input.
package enum CommandLines {
    /// The words of the next command; nil after the last one.
    package static func next() async throws -> [String]? {
        try await onThread { nextLine()?.split(separator: " ").map(String.init) }
    }

    /// Reads the descriptor and not `stdin`: a thread that waits in `readLine` holds the lock of `stdin`, for which
    /// `exit` waits since glibc 2.41.
    private static func nextLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
}
