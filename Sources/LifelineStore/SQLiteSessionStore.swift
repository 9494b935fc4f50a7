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
/// The database may also have the application's own tables; those of the store begin with `lifeline_`. It is in WAL
/// mode, and synchronized at each commit: committed data survives a loss of power, if the disk synchronizes correctly.
///
/// Only the owner can access the file (mode 0600), because it contains the store's secret id, and the messages. A
/// second file with the suffix `.lock` makes sure that the store is opened only once at a time. Use each store for one
/// client, or one server.
public final class SQLiteSessionStore: SessionStore {
    /// The owner of the messages.
    public enum Use: Sendable {
        /// A client of this endpoint.
        case client(of: Endpoint)
        /// A server, for its clients.
        case server

        fileprivate var text: String {
            switch self {
            case .client(let endpoint): "client of \(endpoint)"
            case .server: "server"
            }
        }
    }

    public let id: SessionStoreID

    /// The database, for the application's own tables.
    public let database: DatabaseQueue

    private let writes: GroupedWrites
    private let lock: FileLock
    private let isClosed = Atomic(false)

    /// Opens a store, or makes one if there is no file.
    ///
    /// - Throws: `StoreError`: `inUse`, `otherUse`, `newerVersion`, `damaged`, `insecure`, `full`, or `failed`. In that
    ///   case the disk is unchanged, except that there may be a new file.
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

    /// Closes the file. Every later use of the store fails. A client or a server must no longer use it.
    ///
    /// - Throws: `StoreError` `inUse` when the application still has open statements.
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

    /// Makes sure that the file exists, and is readable only for its owner.
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

    /// Runs an application's write, with the mark of a message, if there is one.
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

    /// GRDB crashes when a closed database is used.
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
/// Durable messages in a SQLite database. It needs the package's trait `Store`.
@available(*, unavailable, message: "Name the trait: .package(url: …, traits: [\"Store\"])")
public final class SQLiteSessionStore {}
#endif
