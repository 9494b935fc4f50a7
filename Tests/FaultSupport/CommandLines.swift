/// The commands that a program under test gets: lines of its standard input.
package enum CommandLines {
    /// The next command, in words; nil when no more will come.
    package static func next() async throws -> [String]? {
        try await onThread { readLine()?.split(separator: " ").map(String.init) }
    }
}
