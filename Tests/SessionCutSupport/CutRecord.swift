internal import Foundation
internal import Synchronization

/// A program's record of the messages that its handlers processed, in order: lines of equal length in a file.
package final class CutRecord: Sendable {
    /// The content of a line.
    package struct Entry: Sendable, Hashable {
        package let flow: CutFlow
        package let number: Int
        /// The message equals the one that was sent with its number.
        package let isIntact: Bool

        package init(_ flow: CutFlow, _ number: Int, isIntact: Bool = true) {
            self.flow = flow
            self.number = number
            self.isIntact = isIntact
        }
    }

    private static let numberLength = 9
    private static let lineLength = numberLength + 3

    private let file: Mutex<FileHandle>

    /// Begins a record.
    package init(at path: String) throws {
        try Data().write(to: URL(filePath: path))
        file = Mutex(try FileHandle(forWritingTo: URL(filePath: path)))
    }

    /// Writes an entry. The line is in the file when this returns, even if the program is killed then.
    package func add(_ entry: Entry) throws {
        let line = Data("\(entry.line)\n".utf8)
        try file.withLock { try $0.write(contentsOf: line) }
    }

    /// Delays some messages, so that connections die while received messages wait for their handlers.
    package func processAndAdd(_ entry: Entry) async throws {
        if entry.number % 32 == 0 { try await Task.sleep(for: .milliseconds(100)) }
        try add(entry)
    }

    /// The number of entries in the record in a file.
    package static func count(at path: String) -> Int {
        let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        return (size ?? 0) / lineLength
    }

    /// The record in a file; nil for malformed entries.
    package static func entries(at path: String) throws -> [Entry?] {
        try String(contentsOf: URL(filePath: path), encoding: .utf8)
            .split(separator: "\n", omittingEmptySubsequences: true)
            .map { Entry(line: $0) }
    }
}

extension CutRecord.Entry {
    fileprivate var line: String {
        // Numbers come from the wire.
        let digits = String(min(UInt64(clamping: number), 999_999_999))
        let padding = String(repeating: "0", count: 9 - digits.count)
        return "\(flow.rawValue)\(isIntact ? " " : "!")\(padding)\(digits)"
    }

    fileprivate init?(line: Substring) {
        guard let flow = CutFlow(rawValue: String(line.prefix(1))), let number = Int(line.dropFirst(2)) else {
            return nil
        }
        self.init(flow, number, isIntact: line.dropFirst().first == " ")
    }
}
