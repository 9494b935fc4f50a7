#if Store
internal import Foundation
internal import GRDB
internal import Lifeline

/// The tables of a store, and the checks when it is opened.
struct StoreSchema {
    /// The version that this code reads and writes.
    static let version = 3

    let path: String
    /// The expected owner of the store.
    let use: String

    /// The id of the store; nil if the database has none yet.
    ///
    /// - Throws: `StoreError`, `DatabaseError`.
    func id(in db: Database) throws -> SessionStoreID? {
        guard try db.tableExists("lifeline_store") else { return nil }
        guard let row = try Row.fetchOne(db, sql: "SELECT version, id, use FROM lifeline_store"),
            let version = Int.fromDatabaseValue(row["version"]),
            let use = String.fromDatabaseValue(row["use"]),
            let bytes = Data.fromDatabaseValue(row["id"]), let id = SessionStoreID(bytes: bytes)
        else {
            throw StoreError(
                code: .damaged,
                message: "\(path) has no description of the store. Begin with a new file."
            )
        }
        guard version <= Self.version else {
            throw StoreError(
                code: .newerVersion,
                message: "\(path) has version \(version) of a store, and this program knows versions up to "
                    + "\(Self.version). Use a newer Lifeline."
            )
        }
        guard use == self.use else {
            throw StoreError(
                code: .otherUse,
                message: "\(path) is the store of a \(use), and was to be that of a \(self.use). Name another file."
            )
        }
        return id
    }

    /// Configures the database so that commits are synchronized.
    ///
    /// - Parameter isNew: whether the database has no tables yet.
    func configure(_ db: Database, isNew: Bool) throws {
        // So that the file can shrink again. This only has an effect before there is a table.
        if isNew { try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL") }
        let mode = try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL")
        // GRDB's pools set NORMAL, which does not synchronize commits.
        try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 4194304")
        let level = try Int.fetchOne(db, sql: "PRAGMA synchronous")
        guard mode == "wal", level == 2 else {
            throw StoreError(
                code: .failed,
                message: "\(path) cannot be used in WAL mode with synchronized commits. Put it on a local disk."
            )
        }
    }

    /// Brings the tables of an older version up to date.
    func migrate(_ db: Database) throws {
        let version = try Int.fetchOne(db, sql: "SELECT version FROM lifeline_store") ?? Self.version
        if version == Self.version { return }
        if version < 2 { try db.execute(sql: "ALTER TABLE lifeline_mark ADD COLUMN reply BLOB") }
        try db.execute(sql: "ALTER TABLE lifeline_group ADD COLUMN added INTEGER NOT NULL DEFAULT 0")
        try db.execute(sql: "ALTER TABLE lifeline_peer ADD COLUMN date INTEGER NOT NULL DEFAULT 0")
        // The date is unknown, so they are kept as long as new ones.
        try db.execute(sql: "UPDATE lifeline_group SET added = unixepoch() * 1000")
        try db.execute(sql: "UPDATE lifeline_store SET version = ?", arguments: [Self.version])
    }

    /// Makes the tables. Returns the id of the store.
    func create(in db: Database) throws -> SessionStoreID {
        let id = SessionStoreID.random()
        try db.execute(
            sql: """
                CREATE TABLE lifeline_store (version INTEGER NOT NULL, id BLOB NOT NULL, use TEXT NOT NULL);
                CREATE TABLE lifeline_peer (
                    peer BLOB PRIMARY KEY, next INTEGER NOT NULL, byte_count INTEGER NOT NULL,
                    date INTEGER NOT NULL DEFAULT 0
                ) WITHOUT ROWID;
                CREATE TABLE lifeline_group (
                    peer BLOB NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, bytes BLOB NOT NULL,
                    added INTEGER NOT NULL DEFAULT 0, UNIQUE (peer, first)
                );
                CREATE TABLE lifeline_processed (sender BLOB PRIMARY KEY, numbers BLOB NOT NULL) WITHOUT ROWID;
                CREATE TABLE lifeline_mark (
                    sender BLOB NOT NULL, number INTEGER NOT NULL, reply BLOB, PRIMARY KEY (sender, number)
                ) WITHOUT ROWID;
                """
        )
        try db.execute(
            sql: "INSERT INTO lifeline_store VALUES (?, ?, ?)",
            arguments: [Self.version, Data(id.bytes), use]
        )
        return id
    }
}
#endif
