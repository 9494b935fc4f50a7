/// The lines of standard input, as they come, without the empty ones.
struct LineReader: ~Copyable {
    private static let maximumLength = 4096

    private let input = InputFile.standardInput()
    private var rest: [UInt8] = []
    private var isAtEnd = false

    /// The next line that is not empty, without its end; nil after the last one.
    ///
    /// - Throws: `CommandFailure` when a line is longer than the room takes; `CancellationError`.
    mutating func next() async throws -> String? {
        while let line = try await nextLine() {
            if !line.isEmpty { return line }
        }
        return nil
    }

    private mutating func nextLine() async throws -> String? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest.removeSubrange(...end) }
                return try line(rest[..<end])
            }
            if isAtEnd {
                defer { rest = [] }
                return rest.isEmpty ? nil : try line(rest[...])
            }
            if rest.count > Self.maximumLength { _ = try line(rest[...]) }
            let chunk = try await input.readChunk()
            isAtEnd = chunk.isEmpty
            rest += chunk
        }
    }

    private func line(_ bytes: ArraySlice<UInt8>) throws(CommandFailure) -> String {
        let bytes = bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes
        guard bytes.count <= Self.maximumLength else {
            throw CommandFailure(
                status: .badData,
                message: "A line on standard input is longer than the \(Self.maximumLength) bytes that the room takes."
            )
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
