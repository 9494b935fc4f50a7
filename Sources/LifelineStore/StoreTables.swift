#if Store
internal import Foundation
internal import GRDB
internal import Lifeline

/// Reads and writes the tables of a store.
enum StoreTables {
    /// The number of free pages of 4 KiB from which on the file is shrunk.
    private static let freePageCount = 1_024
    /// The least number of pages that one commit frees.
    private static let givenBackCount = 256

    static func content(for peer: SessionStoreID?, in db: Database) throws -> SessionStoreContent {
        var content = SessionStoreContent()
        if let row = try Row.fetchOne(
            db,
            sql: "SELECT next, byte_count, date FROM lifeline_peer WHERE peer = ?",
            arguments: [key(peer)]
        ) {
            content.next = try number(row, "next")
            content.byteCount = try value(row, "byte_count")
            content.date = try value(row, "date")
        }
        let first = try Int64.fetchOne(
            db,
            sql: "SELECT min(first) FROM lifeline_group WHERE peer = ?",
            arguments: [key(peer)]
        )
        content.first = first.map { UInt64(bitPattern: $0) } ?? content.next
        let senders =
            peer == nil
            ? try Row.fetchCursor(db, sql: "SELECT sender, numbers FROM lifeline_processed")
            : try Row.fetchCursor(
                db,
                sql: "SELECT sender, numbers FROM lifeline_processed WHERE sender = ?",
                arguments: [key(peer)]
            )
        while let row = try senders.next() {
            content.processed[try sender(of: row)] = [UInt8](try value(row, "numbers") as Data)
        }
        let marks = try Row.fetchCursor(
            db,
            sql: "SELECT sender, number, reply FROM lifeline_mark WHERE ?1 = x'' OR sender = ?1",
            arguments: [key(peer)]
        )
        while let row = try marks.next() {
            let reply: Data? = row["reply"] == nil ? nil : try value(row, "reply")
            content.marked[try sender(of: row), default: []].append(
                SessionStoreMark(number: try number(row, "number"), reply: reply.map { [UInt8]($0) })
            )
        }
        guard content.first >= 1, content.first <= content.next, content.byteCount >= 0 else {
            throw StoreError.damaged
        }
        return content
    }

    static func groups(
        for peer: SessionStoreID?,
        from first: UInt64,
        byteCount: Int,
        in db: Database
    ) throws -> [SessionStoreGroup] {
        var groups: [SessionStoreGroup] = []
        var left = byteCount
        let rows = try Row.fetchCursor(
            db,
            sql: "SELECT first, count, bytes, added FROM lifeline_group WHERE peer = ? AND first >= ? ORDER BY first",
            arguments: [key(peer), Int64(bitPattern: first)]
        )
        while left > 0, let row = try rows.next() {
            let bytes: Data = try value(row, "bytes")
            groups.append(
                SessionStoreGroup(
                    first: try number(row, "first"),
                    count: try value(row, "count"),
                    bytes: [UInt8](bytes),
                    added: try value(row, "added")
                )
            )
            left -= bytes.count
        }
        return groups
    }

    /// Makes changes within a transaction.
    static func make(_ changes: SessionStoreChanges, for peer: SessionStoreID?, in db: Database) throws {
        let key = key(peer)
        var growth = 0
        if let group = changes.added {
            let statement = try db.cachedStatement(
                sql: "INSERT INTO lifeline_group (peer, first, count, bytes, added) VALUES (?, ?, ?, ?, ?)"
            )
            try statement.execute(
                arguments: [key, Int64(bitPattern: group.first), group.count, Data(group.bytes), group.added]
            )
            growth += group.bytes.count
        }
        if !changes.removed.isEmpty {
            let statement = try db.cachedStatement(
                sql: "DELETE FROM lifeline_group WHERE peer = ? AND first = ? RETURNING length(bytes)"
            )
            for first in changes.removed {
                growth -= try Int.fetchOne(statement, arguments: [key, Int64(bitPattern: first)]) ?? 0
            }
        }
        if growth != 0 || changes.added != nil || changes.date != nil {
            let next = changes.added.map { Int64(bitPattern: $0.first + UInt64($0.count)) }
            let statement = try db.cachedStatement(
                sql: """
                    INSERT INTO lifeline_peer (peer, next, byte_count, date)
                    VALUES (?1, coalesce(?2, 1), ?3, coalesce(?4, 0))
                    ON CONFLICT (peer) DO UPDATE
                    SET next = coalesce(?2, next), byte_count = byte_count + ?3, date = coalesce(?4, date)
                    """
            )
            try statement.execute(arguments: [key, next, growth, changes.date])
        }
        if !changes.processed.isEmpty {
            let statement = try db.cachedStatement(
                sql: "INSERT OR REPLACE INTO lifeline_processed (sender, numbers) VALUES (?, ?)"
            )
            for (sender, numbers) in changes.processed {
                try statement.execute(arguments: [Data(sender.bytes), Data(numbers)])
            }
        }
        for (sender, numbers) in changes.unmarked {
            let statement = try db.cachedStatement(sql: "DELETE FROM lifeline_mark WHERE sender = ? AND number = ?")
            for number in numbers {
                try statement.execute(arguments: [Data(sender.bytes), Int64(bitPattern: number)])
            }
        }
        if !changes.removed.isEmpty { try giveBackPages(in: db) }
    }

    /// Marks a message as processed, in the transaction of its handler.
    ///
    /// - Parameter reply: the reply of a call.
    static func mark(_ message: SessionDurableMessage, reply: [UInt8]?, in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: "INSERT OR IGNORE INTO lifeline_mark (sender, number, reply) VALUES (?, ?, ?)"
        )
        try statement.execute(
            arguments: [Data(message.sender.bytes), Int64(bitPattern: message.number), reply.map { Data($0) }]
        )
    }

    /// Removes the groups that were added up to a date, except those for some peers. Returns the number of their
    /// messages.
    static func removeGroups(addedUntil date: Int64, except peers: Set<SessionStoreID>, in db: Database) throws -> Int {
        let holders = try Data.fetchAll(db, sql: "SELECT peer FROM lifeline_peer WHERE byte_count > 0")
        let spared = Set(peers.map { key($0) })
        let statement = try db.cachedStatement(
            sql: "DELETE FROM lifeline_group WHERE peer = ? AND added <= ? RETURNING count, length(bytes) AS length"
        )
        var messageCount = 0
        for peer in holders where !spared.contains(peer) {
            var byteCount = 0
            for row in try Row.fetchAll(statement, arguments: [peer, date]) {
                messageCount += try value(row, "count") as Int
                byteCount += try value(row, "length") as Int
            }
            if byteCount == 0 { continue }
            try db.execute(
                sql: "UPDATE lifeline_peer SET byte_count = byte_count - ? WHERE peer = ?",
                arguments: [byteCount, peer]
            )
        }
        if messageCount > 0 { try giveBackPages(in: db) }
        return messageCount
    }

    /// Shrinks the file if much of it is free.
    private static func giveBackPages(in db: Database) throws {
        let free = try Int.fetchOne(try db.cachedStatement(sql: "PRAGMA freelist_count")) ?? 0
        // Frees only a part, so that no commit takes long, and many commits in a row leave few pages.
        guard free >= freePageCount else { return }
        try db.execute(sql: "PRAGMA incremental_vacuum(\(max(givenBackCount, free / 8)))")
    }

    /// Returns the key of a peer in the tables; a client's only peer has an empty one.
    private static func key(_ peer: SessionStoreID?) -> Data { Data(peer?.bytes ?? []) }

    /// Returns a value of a row, which may have any type in a damaged file.
    private static func value<Value: DatabaseValueConvertible>(_ row: Row, _ column: String) throws -> Value {
        guard let value = Value.fromDatabaseValue(row[column]) else { throw StoreError.damaged }
        return value
    }

    private static func number(_ row: Row, _ column: String) throws -> UInt64 {
        let number: Int64 = try value(row, column)
        guard number >= 1 else { throw StoreError.damaged }
        return UInt64(number)
    }

    private static func sender(of row: Row) throws -> SessionStoreID {
        guard let id = SessionStoreID(bytes: try value(row, "sender") as Data) else { throw StoreError.damaged }
        return id
    }
}

extension StoreError {
    fileprivate static var damaged: StoreError {
        StoreError(
            code: .damaged,
            message: "The store has content that Lifeline does not write. Begin with a new one."
        )
    }

    /// Makes the error for a failure of a file.
    init(_ error: any Error, _ path: String) {
        switch error {
        case let error as StoreError: self = error
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_FULL:
                self.init(code: .full, message: "There is no room for \(path). Make room on its disk.", cause: error)
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                self.init(
                    code: .inUse,
                    message: "Another program writes to \(path). Stop it; the store has one user at a time.",
                    cause: error
                )
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                self.init(
                    code: .damaged,
                    message: "\(path) is not a database, or is damaged. Begin with a new file.",
                    cause: error
                )
            default:
                self.init(
                    code: .failed,
                    message: "\(path) could not be read or written. Check its disk.",
                    cause: error
                )
            }
        default: self.init(code: .failed, message: "\(path) could not be used.", cause: error)
        }
    }

    /// - Parameter code: the system's error number.
    init(opening path: String, _ code: Int32) {
        self.init(
            code: .failed,
            message:
                "\(path) could not be opened: \(String(cString: strerror(code))). Check that its folder exists "
                + "and is writable."
        )
    }
}
#endif
