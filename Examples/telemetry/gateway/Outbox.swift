#if Store
internal import GRDB
internal import Lifeline
internal import LifelineStore

/// The gateway's own database: the measurements that the collector has not yet processed, and how far the file is read.
struct Outbox {
    /// Keeps the measurements.
    let store: SQLiteSessionStore

    init(path: String, for endpoint: Endpoint) async throws {
        store = try SQLiteSessionStore(path: path, for: .client(of: endpoint))
        try await store.database.write { db in
            try db.execute(sql: "CREATE TABLE IF NOT EXISTS place (line INTEGER NOT NULL, offset INTEGER NOT NULL)")
        }
    }

    /// The place in the file that was noted last. It may be behind what is in the store, but never before it.
    func place() async throws -> FilePlace {
        try await store.database.read { db in
            guard let row = try Row.fetchOne(db, sql: "SELECT line, offset FROM place") else { return FilePlace() }
            return FilePlace(line: row["line"], offset: row["offset"])
        }
    }

    /// Notes that all lines before a place are in the store.
    func note(_ place: FilePlace) async throws {
        try await store.database.write { db in
            try db.execute(sql: "DELETE FROM place")
            try db.execute(sql: "INSERT INTO place VALUES (?, ?)", arguments: [place.line, place.offset])
        }
    }
}
#endif
