#if Store
import FaultSupport
import Foundation
import LifelineTestSupport

/// Simulates losses of power for the databases of killed processes.
///
/// Tests/PowerLoss/power_loss.c records their writes that are not synchronized. A power loss keeps or loses each of
/// these writes, or keeps its first sectors, independently of earlier writes: a disk may reorder them.
enum PowerLoss {
    private static let sectorByteCount = 512

    private enum Record {
        case written(offset: Int, [UInt8])
        case truncated(length: Int)
        case synced
    }

    /// Records processes that are started from now on.
    static func record(in folder: String, with library: String) throws {
        guard access(library, R_OK) == 0 else {
            throw FaultFailure("\(library) is missing. Run scripts/kills, which builds it.")
        }
        setenv("LIFELINE_POWER_LOSS", folder, 1)
        setenv("LD_PRELOAD", library, 1)
    }

    /// Simulates a loss of power for a database whose process was killed. Returns how many writes were lost at least in
    /// part.
    static func strike(_ database: String, using random: inout SeededGenerator) throws -> Int {
        // It is created again when the database is opened.
        unlink(database + "-shm")
        return try ["", "-wal", "-journal"].reduce(0) { try $0 + strikeFile(database + $1, using: &random) }
    }

    private static func strikeFile(_ path: String, using random: inout SeededGenerator) throws -> Int {
        let records = try self.records(path + ".unsynced")
        let syncedEnd = (records.lastIndex { if case .synced = $0 { true } else { false } }).map { $0 + 1 } ?? 0
        guard var content = bytes(of: path + ".durable") ?? (syncedEnd > 0 ? [] : nil) else {
            // It was never synchronized, so it does not exist.
            unlink(path)
            unlink(path + ".unsynced")
            return 0
        }
        for record in records[..<syncedEnd] { apply(record, to: &content) }
        var lostCount = 0
        for record in records[syncedEnd...] {
            switch (Int.random(in: 0..<3, using: &random), record) {
            case (0, _): apply(record, to: &content)
            case (1, .written(let offset, let bytes)) where bytes.count > sectorByteCount:
                let sectors = Int.random(in: 1..<(bytes.count + sectorByteCount - 1) / sectorByteCount, using: &random)
                apply(.written(offset: offset, Array(bytes.prefix(sectors * sectorByteCount))), to: &content)
                lostCount += 1
            default: lostCount += 1
            }
        }
        for name in [path, path + ".durable"] { try Data(content).write(to: URL(filePath: name)) }
        // The store refuses files that others can read.
        chmod(path, 0o600)
        unlink(path + ".unsynced")
        return lostCount
    }

    private static func apply(_ record: Record, to content: inout [UInt8]) {
        switch record {
        case .synced: break
        case .truncated(let length): resize(&content, to: length)
        case .written(let offset, let bytes):
            if content.count < offset + bytes.count { resize(&content, to: offset + bytes.count) }
            content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
    }

    private static func resize(_ content: inout [UInt8], to length: Int) {
        content.removeLast(max(content.count - length, 0))
        content += [UInt8](repeating: 0, count: length - content.count)
    }

    private static func bytes(of path: String) -> [UInt8]? {
        (try? Data(contentsOf: URL(filePath: path))).map { [UInt8]($0) }
    }

    private static func records(_ path: String) throws -> [Record] {
        let bytes = bytes(of: path) ?? []
        var (records, position) = ([Record](), 0)
        func number(_ index: Int) -> Int {
            (0..<8).reduce(0) { $0 | Int(bytes[position + 8 * index + $1]) << (8 * $1) }
        }
        // The last record may be truncated, because its process was killed. That write was not made.
        while position + 24 <= bytes.count {
            let (kind, offset, length) = (number(0), number(1), number(2))
            position += 24
            guard position + length <= bytes.count else { break }
            switch kind {
            case 1: records.append(.written(offset: offset, Array(bytes[position..<position + length])))
            case 2: records.append(.truncated(length: offset))
            case 3: records.append(.synced)
            default: throw FaultFailure("\(path) has a record of the kind \(kind).")
            }
            position += length
        }
        return records
    }
}
#endif
