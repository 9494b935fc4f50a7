#if Store
internal import Foundation
public import GRDB
public import Lifeline
internal import Synchronization

/// Durable messages of a client or a server in a SQLite database.
///
///     var configuration = SessionClientConfiguration()
///     configuration.store = try SQLiteSessionStore(path: "outbox.sqlite", for: .client(of: endpoint))
///     try await withSessionClient(to: endpoint, configuration: configuration) { session in
///         try await session.push("sample.Meter/Report", reading, delivery: .durable)
///     }
///
/// The database may have tables of the application's own; those of the store begin with `lifeline_`. It is in WAL mode,
/// and synchronized with each commit: what was committed survives a loss of power, as far as the disk does what it says.
///
/// The file is the owner's alone (mode 0600), as it has what names the store to the other side, and the messages. Beside
/// it stands a file with `.lock` behind the name, which sees to it that the store is opened once at a time. Use one store
/// for one client, or one server.
public final class SQLiteSessionStore: SessionStore {
    /// Whose messages they are.
    public enum Use: Sendable {
        /// Of a client of this endpoint.
        case client(of: Endpoint)
        /// Of a server, for its clients.
        case server

        fileprivate var text: String {
            switch self {
            case .client(let endpoint): "client of \(endpoint)"
            case .server: "server"
            }
        }
    }

    public let id: SessionStoreID

    /// The database, for tables of the application's own.
    public let database: DatabaseQueue

    private let writes: GroupedWrites
    private let lock: FileLock
    private let isClosed = Atomic(false)

    /// Opens a store, or makes one where there is no file.
    ///
    /// - Throws: `StoreError`: `inUse`, `otherUse`, `newerVersion`, `damaged`, `insecure`, `full`, or `failed`. Nothing
    ///   was changed on the disk then, but that a new file may be there.
    public init(path: String, for use: Use) throws(StoreError) {
        lock = try FileLock(besides: path)
        try Self.makePrivate(path)
        do {
            let database = try DatabaseQueue(path: path, configuration: Self.configuration)
            self.database = database
            writes = GroupedWrites(database)
            let isNew = try database.read { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") == 0
            }
            let schema = StoreSchema(path: path, use: use.text)
            let known = try database.read { try schema.id(in: $0) }
            try database.writeWithoutTransaction { db in try schema.configure(db, isNew: isNew) }
            id = try database.write { db in
                guard let known else { return try schema.create(in: db) }
                try schema.migrate(db)
                return known
            }
        } catch {
            throw StoreError(error, path)
        }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        // Programs that read the file, such as `sqlite3`, lock it for a moment when they open it.
        configuration.busyMode = .timeout(5)
        return configuration
    }

    /// Closes the file. Every later use of the store fails. A client or a server must not use it any more.
    ///
    /// - Throws: `StoreError` `inUse` when statements of the application's own are open.
    public func close() throws(StoreError) {
        let wasClosed = isClosed.exchange(true, ordering: .sequentiallyConsistent)
        if wasClosed { return }
        do {
            try database.close()
        } catch {
            isClosed.store(false, ordering: .sequentiallyConsistent)
            throw StoreError(error, database.path)
        }
        lock.unlock()
    }

    /// Has the file there, readable for its owner alone.
    private static func makePrivate(_ path: String) throws(StoreError) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StoreError(opening: path, errno) }
        defer { Glibc.close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw StoreError(opening: path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(code: .otherUse, message: "\(path) is no file. Name a file, or none that is there yet.")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw StoreError(
                code: .insecure,
                message: "\(path) has secrets, and others than its owner may use it. Run chmod 600 on it."
            )
        }
    }

    // MARK: SessionStore

    public func content(for peer: SessionStoreID?) async throws(StoreError) -> SessionStoreContent {
        try await translatingErrors {
            try await self.database.read { try StoreTables.content(for: peer, in: $0) }
        }
    }

    public func groups(
        for peer: SessionStoreID?,
        from number: UInt64,
        byteCount: Int
    ) async throws(StoreError) -> [SessionStoreGroup] {
        try await translatingErrors {
            try await self.database.read { db in
                try StoreTables.groups(for: peer, from: number, byteCount: byteCount, in: db)
            }
        }
    }

    public func commit(_ changes: SessionStoreChanges, for peer: SessionStoreID?) async throws(StoreError) {
        try await translatingErrors {
            try await self.writes.write { try StoreTables.make(changes, for: peer, in: $0) }
        }
    }

    public func removeGroups(
        addedUntil date: Int64,
        except peers: Set<SessionStoreID>
    ) async throws(StoreError) -> Int {
        try await translatingErrors {
            try await self.writes.write { try StoreTables.removeGroups(addedUntil: date, except: peers, in: $0) }
        }
    }

    /// Writes what an application wants to, with the mark of a message; nil: without one.
    func write<Result: Sendable>(
        marking message: SessionDurableMessage?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try checkOpen()
        return try await writes.write { db in
            let result = try body(db)
            if let message { try StoreTables.mark(message, reply: try message.reply(in: result), in: db) }
            return result
        }
    }

    /// GRDB crashes when a database is used that is closed.
    private func checkOpen() throws(StoreError) {
        guard isClosed.load(ordering: .sequentiallyConsistent) else { return }
        throw StoreError(code: .failed, message: "\(database.path) is closed. Open it again.")
    }

    private func translatingErrors<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async throws(StoreError) -> Result {
        try checkOpen()
        do { return try await body() } catch { throw StoreError(error, database.path) }
    }
}
#else
/// Durable messages in a SQLite database. It is there with the trait `Store` of the package.
@available(*, unavailable, message: "Name the trait: .package(url: …, traits: [\"Store\"])")
public final class SQLiteSessionStore {}
#endif
