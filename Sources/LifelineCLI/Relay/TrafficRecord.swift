internal import LifelineMessages
internal import Synchronization

/// A file with the messages that passed a relay: one JSON object on each line.
final class TrafficRecord: Sendable {
    /// The highest number of a connection that the file had before.
    let connectionCount: Int
    private let lines: LineRecord
    /// Whether the file ends with an incomplete line, from a relay that was killed while it wrote. Then the first
    /// addition begins a new line.
    private let endsInsideLine: Mutex<Bool>

    /// Opens a record to append to it.
    ///
    /// - Throws: `CommandFailure` when the file cannot be opened or read, or is not a record.
    init(appendingTo path: String) async throws {
        lines = try LineRecord(path: path)
        var (reader, count) = (TrafficRecordReader(lines.content, isQuiet: true), 0)
        while let batch = try await reader.next() { count = max(count, batch.map(\.connection).max() ?? 0) }
        guard count > 0 || reader.isEmpty || reader.isTornMessage else {
            throw CommandFailure(
                status: .badData,
                message: "Cannot record in \(path): it has something, and no recorded message. Name another file."
            )
        }
        connectionCount = count
        endsInsideLine = Mutex(reader.endsInsideLine)
    }

    /// Writes messages. When this returns, the system has them, even if this process is killed.
    func append(_ messages: [PassedMessage]) throws {
        var text: [UInt8] = []
        for message in messages { text += try jsonLine(message) + [UInt8(ascii: "\n")] }
        try endsInsideLine.withLock { endsInsideLine in
            try lines.append(endsInsideLine ? [UInt8(ascii: "\n")] + text : text)
            endsInsideLine = false
        }
    }
}

/// Reads a file that a relay has recorded.
struct TrafficRecordReader {
    /// The number of lines that are not recorded messages after which further ones are only counted.
    private static let maximumToldCount = 5

    private let file: OpenFile
    /// The received part of the present line.
    private var rest: [UInt8] = []
    private var lineNumber = 0
    private var badCount = 0
    private var isAtEnd = false
    private let isQuiet: Bool

    /// - Parameter isQuiet: whether not to report lines that are not recorded messages.
    init(_ file: consuming InputFile, isQuiet: Bool = false) {
        self.file = OpenFile(file)
        self.isQuiet = isQuiet
    }

    /// Whether nothing was in the file.
    var isEmpty: Bool { lineNumber == 0 }

    /// Whether the file is one message, incomplete: a complete one ends with its only closing brace.
    var isTornMessage: Bool {
        let beginning = [UInt8](PassedMessage.beginning.utf8)
        return endsInsideLine && lineNumber == 1 && (rest.starts(with: beginning) || beginning.starts(with: rest))
            && rest.last != UInt8(ascii: "}")
    }

    /// Whether the last line was cut.
    var endsInsideLine: Bool { isAtEnd && !rest.isEmpty }

    /// Reads the next messages; returns nil at the end. Reports lines that are not recorded messages.
    mutating func next() async throws -> [PassedMessage]? {
        if isAtEnd { return nil }
        let chunk = try await file.readChunk()
        try Task.checkCancellation()
        if chunk.isEmpty {
            isAtEnd = true
            let last = rest.isEmpty ? nil : message(in: rest[...])
            tellBadCount()
            return last.map { [$0] }
        }
        var messages: [PassedMessage] = []
        var start = 0
        while let end = chunk[start...].firstIndex(of: UInt8(ascii: "\n")) {
            rest += chunk[start..<end]
            if let message = message(in: rest[...]) { messages.append(message) }
            rest = []
            start = end + 1
        }
        rest += chunk[start...]
        // No message is longer than 2 GiB; its Base64 is a third longer.
        guard rest.count <= 3 << 30 else {
            throw CommandFailure(status: .badData, message: "A line of \(file.name) has no end. Is it a record?")
        }
        return messages
    }

    private mutating func message(in line: ArraySlice<UInt8>) -> PassedMessage? {
        lineNumber += 1
        if line.isEmpty { return nil }
        if let passed = PassedMessage(line: line) { return passed }
        badCount += 1
        if !isQuiet, badCount <= Self.maximumToldCount {
            writeErrorLine("lifeline: left out line \(lineNumber) of \(file.name), which is no recorded message")
        }
        return nil
    }

    /// Reports the number of left-out lines, if not each was reported.
    private func tellBadCount() {
        if isQuiet || badCount <= Self.maximumToldCount { return }
        writeErrorLine("lifeline: lines of \(file.name) that are not recorded messages: \(badCount) in all")
    }
}
