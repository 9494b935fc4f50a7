internal import Synchronization

/// The lines of standard input, as they come.
struct LineReader: ~Copyable {
    private static let maximumLength = 4096

    private let input = InputFile.standardInput()
    private var rest: [UInt8] = []
    private var isAtEnd = false

    /// The next line without its end; nil after the last one.
    ///
    /// - Throws: `CommandFailure` when a line is longer than the room takes; `CancellationError`.
    mutating func next() async throws -> String? {
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
            let chunk = try await input.readChunkUnlessCancelled()
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

extension InputFile {
    /// `readChunk()`, but for waiting on when the task is cancelled: what is read then is lost.
    func readChunkUnlessCancelled() async throws -> [UInt8] {
        let (chunks, continuation) = AsyncThrowingStream.makeStream(of: [UInt8].self)
        startReading { continuation.yield(with: $0) }
        for try await chunk in chunks { return chunk }
        throw CancellationError()
    }
}
