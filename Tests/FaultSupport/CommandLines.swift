/// The commands for a program under test: lines of its standard input.
package enum CommandLines {
    /// The words of the next command; nil after the last one.
    package static func next() async throws -> [String]? {
        try await onThread { readLine()?.split(separator: " ").map(String.init) }
    }
}
