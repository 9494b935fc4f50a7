internal import FoundationEssentials
internal import LifelineMessages

/// A file with the messages that passed a relay: a JSON object a line.
final class TrafficRecord: Sendable {
    /// The highest number of a connection that the file had before.
    let connectionCount: Int
    private let file: OutputFile

    /// Goes on behind what the file holds.
    ///
    /// - Throws: `CommandFailure` when the file cannot be opened or read.
    init(appendingTo path: String) async throws {
        file = try OutputFile(appendingTo: path)
        var (reader, count) = (try TrafficRecordReader(path: path, isQuiet: true), 0)
        while let batch = try await reader.next() { count = max(count, batch.map(\.connection).max() ?? 0) }
        connectionCount = count
        // A line that a relay which was killed has written in part.
        if reader.endsInsideLine { try await file.write([UInt8(ascii: "\n")]) }
    }

    /// Writes a message: the system has it when this returns, whatever becomes of this process then.
    func append(_ passed: PassedMessage) async throws {
        try await file.write(try jsonLine(RecordedMessage(passed)) + [UInt8(ascii: "\n")])
    }
}

/// Reads a file that a relay has recorded.
struct TrafficRecordReader {
    private let file: OpenFile
    /// The line that has begun, as far as it has come.
    private var rest: [UInt8] = []
    private var lineNumber = 0
    private var isAtEnd = false
    private let isQuiet: Bool
    /// A thousand years, in seconds: what is longer is no time, and might not fit the numbers that it is printed with.
    private let maximumTime = 3e10

    /// - Parameter isQuiet: whether nothing is told of lines that are none.
    /// - Throws: `CommandFailure` when the file cannot be opened.
    init(path: String, isQuiet: Bool = false) throws(CommandFailure) {
        file = OpenFile(try InputFile(path: path))
        self.isQuiet = isQuiet
    }

    /// Whether the last line was cut.
    var endsInsideLine: Bool { isAtEnd && !rest.isEmpty }

    /// Reads the next messages; nil at the end. Tells of lines that are none.
    mutating func next() async throws -> [PassedMessage]? {
        if isAtEnd { return nil }
        let chunk = try await file.readChunk()
        try Task.checkCancellation()
        if chunk.isEmpty {
            isAtEnd = true
            return rest.isEmpty ? nil : [message(in: rest[...])].compactMap(\.self)
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
        // No message is longer than 2 GiB; its Base64 is, by a third.
        guard rest.count <= 3 << 30 else {
            throw CommandFailure(status: .badData, message: "A line of \(file.name) has no end. Is it a record?")
        }
        return messages
    }

    private mutating func message(in line: ArraySlice<UInt8>) -> PassedMessage? {
        lineNumber += 1
        if line.isEmpty { return nil }
        if let recorded = try? JSONDecoder().decode(RecordedMessage.self, from: Data(line)), recorded.connection > 0,
            (0...maximumTime).contains(recorded.time)
        {
            return PassedMessage(recorded)
        }
        if !isQuiet {
            writeErrorLine("lifeline: left out line \(lineNumber) of \(file.name), which is no recorded message")
        }
        return nil
    }
}

/// A line of the file.
private struct RecordedMessage: Codable {
    let time: Double
    let connection: Int
    let direction: TrafficDirection
    let frame: Data

    init(_ passed: PassedMessage) {
        (time, connection, direction) = (passed.time, passed.connection, passed.direction)
        frame = Data(passed.message.bytes)
    }
}

extension PassedMessage {
    fileprivate init(_ recorded: RecordedMessage) {
        self.init(
            time: recorded.time,
            connection: recorded.connection,
            direction: recorded.direction,
            message: RawMessage(bytes: [UInt8](recorded.frame))
        )
    }
}
